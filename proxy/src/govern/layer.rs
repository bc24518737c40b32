//! What a layer is, and how layers are stacked.
//!
//! A layer judges one aspect of a call. It has no state of its own: what it counts in are words
//! reached from the bundle, and what it took for one exchange is in its `Hold`, which the driver
//! owns. A layer whose limit is absent costs one branch.
//!
//! The driver calls `admit`, then `reserve`, each until the first refusal, and after that, whatever
//! came, `settle` exactly once: a default hold gives nothing back, so there is no unwinding to
//! get wrong. `leave` may come before `settle`.

use crate::exchange::bundle::Bundle;
use crate::exchange::call::Call;
use crate::exchange::money::PicoUsd;
use crate::exchange::plan::Plan;
use crate::exchange::refusal::Refusal;
use crate::exchange::time::Now;

/// One aspect of governance. Every method has a default that lets everything pass.
pub trait Layer {
    /// What it took for one exchange. The default is nothing.
    type Hold: Default;

    /// Its name in metrics and docs.
    const NAME: &'static str;

    /// Judges what needs no plan. Outermost first; the first refusal ends the exchange.
    fn admit(&self, call: &Call<'_>, hold: &mut Self::Hold, now: Now) -> Result<(), Refusal> {
        let _ = (call, hold, now);
        Ok(())
    }

    /// Judges what needs the plan: may strike offers, or refuse. Outermost first.
    fn reserve(
        &self,
        call: &Call<'_>,
        plan: &mut Plan<'_>,
        hold: &mut Self::Hold,
        now: Now,
    ) -> Result<(), Refusal> {
        let _ = (call, plan, hold, now);
        Ok(())
    }

    /// The client is gone, the exchange is not: gives back what only a present client takes up.
    fn leave(&self, bundle: &Bundle, hold: &mut Self::Hold) {
        let _ = (bundle, hold);
    }

    /// Exactly once an exchange, with what it cost: gives back or trues up what was taken.
    /// Innermost first.
    fn settle(&self, bundle: &Bundle, hold: Self::Hold, cost: PicoUsd) {
        let _ = (bundle, hold, cost);
    }
}

/// Two layers as one: static dispatch, no allocation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stack<Outer, Inner> {
    outer: Outer,
    inner: Inner,
}

impl<Outer: Layer, Inner: Layer> Layer for Stack<Outer, Inner> {
    type Hold = (Outer::Hold, Inner::Hold);

    const NAME: &'static str = "stack";

    fn admit(&self, call: &Call<'_>, hold: &mut Self::Hold, now: Now) -> Result<(), Refusal> {
        self.outer.admit(call, &mut hold.0, now)?;
        self.inner.admit(call, &mut hold.1, now)
    }

    fn reserve(
        &self,
        call: &Call<'_>,
        plan: &mut Plan<'_>,
        hold: &mut Self::Hold,
        now: Now,
    ) -> Result<(), Refusal> {
        self.outer.reserve(call, plan, &mut hold.0, now)?;
        self.inner.reserve(call, plan, &mut hold.1, now)
    }

    fn leave(&self, bundle: &Bundle, hold: &mut Self::Hold) {
        self.inner.leave(bundle, &mut hold.1);
        self.outer.leave(bundle, &mut hold.0);
    }

    fn settle(&self, bundle: &Bundle, hold: Self::Hold, cost: PicoUsd) {
        self.inner.settle(bundle, hold.1, cost);
        self.outer.settle(bundle, hold.0, cost);
    }
}

/// The innermost of every stack.
impl Layer for () {
    type Hold = ();

    const NAME: &'static str = "none";
}

/// The type of a stack of layers, outermost first.
macro_rules! stack {
    ($outer:ty $(, $inner:ty)* $(,)?) => {
        $crate::govern::layer::Stack<$outer, $crate::govern::layer::stack![$($inner),*]>
    };
    () => { () };
}
pub(crate) use stack;
