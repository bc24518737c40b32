use super::*;

#[test]
fn an_errors_status_decides_its_row() {
    for (status, kind) in [
        (101, Kind::Redirected),
        (302, Kind::Redirected),
        (400, Kind::Rejected),
        (401, Kind::Unauthorized),
        (402, Kind::Exhausted),
        (403, Kind::Forbidden),
        (404, Kind::Mismatch),
        (405, Kind::Mismatch),
        (408, Kind::Rejected),
        (409, Kind::Rejected),
        (413, Kind::Rejected),
        (422, Kind::Rejected),
        (429, Kind::Busy),
        (500, Kind::Busy),
        (501, Kind::Mismatch),
        (502, Kind::Doubtful),
        (503, Kind::Busy),
        (504, Kind::Doubtful),
        (520, Kind::Doubtful),
        (529, Kind::Busy),
        (599, Kind::Doubtful),
    ] {
        let fault = Fault::of(&Answered { status, ..Answered::default() });
        assert_eq!((fault.kind, fault.status, fault.within), (kind, status, false), "{status}");
    }
}
