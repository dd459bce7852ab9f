use super::Priority::{Batch, Interactive};
use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A queue with its only slot taken.
fn full(room: usize) -> Queue<&'static str> {
    let mut queue = Queue::new(1, room);
    assert!(queue.enter());
    queue
}

/// Who had to leave for `wake`.
fn line_up(queue: &mut Queue<&'static str>, priority: Priority, wake: &'static str) -> Option<&'static str> {
    match queue.line_up(priority, wake, Instant::now()) {
        Place::Waiting { dropped, .. } => dropped,
        Place::None => Some(wake),
    }
}

fn served(queue: &mut Queue<&'static str>) -> Vec<&'static str> {
    std::iter::from_fn(|| queue.release(SECOND)).collect()
}

#[test]
fn the_oldest_is_served_first_and_batch_last() {
    let mut queue = full(9);
    for (priority, name) in [(Batch, "b1"), (Interactive, "i1"), (Batch, "b2"), (Interactive, "i2")] {
        assert_eq!(line_up(&mut queue, priority, name), None);
    }
    assert_eq!(served(&mut queue), ["i1", "i2", "b1", "b2"]);
    assert_eq!((queue.in_flight(), queue.waiting()), (0, 0));
}

#[test]
fn the_oldest_is_dropped_first_and_batch_before_interactive() {
    let mut queue = full(3);
    for (priority, name, dropped) in [
        (Interactive, "i1", None),
        (Batch, "b1", None),
        (Batch, "b2", None),
        (Batch, "b3", Some("b1")),
        (Interactive, "i2", Some("b2")),
        (Interactive, "i3", Some("b3")),
        (Interactive, "i4", Some("i1")),
        (Batch, "b4", Some("b4")),
    ] {
        assert_eq!(line_up(&mut queue, priority, name), dropped, "{name}");
    }
    assert_eq!(served(&mut queue), ["i2", "i3", "i4"]);
}

#[test]
fn without_room_nobody_waits() {
    let mut queue = full(0);
    assert_eq!(line_up(&mut queue, Interactive, "i1"), Some("i1"));
}

#[test]
fn a_waiter_that_leaves_is_not_served() {
    let mut queue = full(9);
    let tickets = ["i1", "i2", "i3"].map(|name| match queue.line_up(Interactive, name, Instant::now()) {
        Place::Waiting { ticket, .. } => ticket,
        Place::None => panic!("there is room"),
    });
    queue.leave(tickets[1]);
    queue.leave(tickets[1]);
    assert_eq!(served(&mut queue), ["i1", "i3"]);
    queue.leave(tickets[0]);
}

#[test]
fn a_limit_goes_up_at_once_and_down_as_slots_come_back() {
    let mut queue = full(9);
    for name in ["i1", "i2", "i3"] {
        line_up(&mut queue, Interactive, name);
    }
    assert_eq!(queue.set_limit(3), ["i1", "i2"]);
    assert_eq!(queue.set_limit(1), [""; 0]);
    assert_eq!(queue.in_flight(), 3);
    assert_eq!(
        [queue.release(SECOND), queue.release(SECOND), queue.release(SECOND)],
        [None, None, Some("i3")]
    );
}

#[test]
fn the_wait_is_estimated_from_the_line_and_how_long_slots_are_held() {
    let mut queue = Queue::new(2, 9);
    assert_eq!(queue.retry_after(), SECOND, "nothing is known yet");
    for _ in 0..2 {
        assert!(queue.enter());
    }
    for name in ["i1", "i2", "i3", "i4", "i5"] {
        line_up(&mut queue, Interactive, name);
    }
    queue.release(8 * SECOND);
    assert_eq!(queue.waiting(), 4);
    assert_eq!(queue.retry_after(), 20 * SECOND, "the fifth turn of two slots");
    queue.release(16 * SECOND);
    assert_eq!(queue.retry_after(), 18 * SECOND, "the mean moved to 9 s, the line to 3");
    queue.release(Duration::MAX);
    assert_eq!(queue.retry_after(), Duration::from_mins(1));
}

#[test]
fn the_oldest_of_both_lines_is_the_oldest() {
    let (mut queue, start) = (full(9), Instant::now());
    assert_eq!(queue.oldest(start), None);
    let _ = queue.line_up(Batch, "b1", start);
    let _ = queue.line_up(Interactive, "i1", start + SECOND);
    assert_eq!(queue.oldest(start + 3 * SECOND), Some(3 * SECOND));
}
