use std::collections::VecDeque;

use super::rig::{add, hold, on_every_device, slow};
use tidemill_gpu::{GpuError, SlotState, TripleBuffer};

#[test]
fn a_slot_goes_round_and_gives_its_elements_back() {
    on_every_device(|device| {
        let (stream, buffer) = (device.stream().unwrap(), TripleBuffer::<u64>::new(device, 100).unwrap());
        for round in 0..5 {
            assert_eq!(buffer.states(), [SlotState::Free; 3]);
            let slot = buffer.acquire().unwrap();
            let slot = slot.upload(&stream, 60, |elements| elements.fill(round)).unwrap();
            assert_eq!(buffer.states()[slot.number()], SlotState::Uploading);
            slot.wait().unwrap();
            assert_eq!(buffer.states()[slot.number()], SlotState::Uploading, "uploaded is not processing");
            let slot = slot.process(&stream, |stream, elements| add(stream, elements, 10)).unwrap();
            assert_eq!(buffer.states()[slot.number()], SlotState::Processing);
            slot.wait().unwrap();
            let slot = slot.download(&stream).unwrap();
            assert_eq!(buffer.states()[slot.number()], SlotState::Downloading);
            slot.wait().unwrap();
            let (sum, slot) = slot.finish(|elements| elements.iter().sum::<u64>()).unwrap();
            assert_eq!(sum, 60 * (round + 10));
            assert_eq!(buffer.states()[slot.number()], SlotState::Free);
        }
    });
}

#[test]
fn a_slot_advances_only_when_its_work_is_done() {
    on_every_device(|device| {
        let (stream, buffer) = (device.stream().unwrap(), TripleBuffer::<u64>::new(device, 10).unwrap());
        let refused = |error: &GpuError| matches!(error, GpuError::NotReady { .. });

        // The stream is held up behind a gate, so that no step can be done before the gate is opened.
        let gate = hold(&stream);
        let slot = buffer.acquire().unwrap().upload(&stream, 10, |elements| elements.fill(5)).unwrap();
        let early = slot.process(&stream, |_, _| panic!("must not be called")).unwrap_err();
        let gate = gate; // Dropped before the slot, which waits for its work.
        assert!(
            refused(&early.error) && early.error.to_string().contains("still uploading"),
            "{}",
            early.error
        );
        assert_eq!(buffer.states()[early.slot.number()], SlotState::Uploading);
        gate.open();
        early.slot.wait().unwrap();

        let mut gate = None;
        let slot = early.slot.process(&stream, |stream, elements| {
            gate = Some(hold(stream));
            add(stream, elements, 2)
        });
        let early = slot.unwrap().download(&stream).unwrap_err();
        let gate = gate.unwrap();
        assert!(refused(&early.error), "{}", early.error);
        gate.open();
        early.slot.wait().unwrap();

        let gate = hold(&stream);
        let slot = early.slot.download(&stream).unwrap();
        let early = slot.finish(|_| panic!("must not be called")).unwrap_err();
        let gate = gate; // Dropped before the slot, which waits for its work.
        assert!(refused(&early.error), "{}", early.error);
        gate.open();
        early.slot.wait().unwrap();

        let (elements, _) = early.slot.finish(|elements| elements.to_vec()).unwrap();
        assert_eq!(elements, [7; 10]);
    });
}

#[test]
fn there_are_three_slots_and_dropped_ones_come_back() {
    on_every_device(|device| {
        let (stream, buffer) = (device.stream().unwrap(), TripleBuffer::<u64>::new(device, 10).unwrap());
        let slots: Vec<_> = (0..3).map(|_| buffer.acquire().unwrap()).collect();
        let mut numbers: Vec<_> = slots.iter().map(|slot| slot.number()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1, 2]);
        assert!(buffer.acquire().is_none());
        let mut slots = slots.into_iter();
        let busy = device.alloc::<u64>(1).unwrap();
        slow(&stream, &busy, 1).unwrap();
        let before = stream.record().unwrap();
        let slot = slots.next().unwrap().upload(&stream, 10, |_| ()).unwrap();
        drop(slot);
        assert!(before.is_done().unwrap(), "a slot in flight is waited for");
        assert!(buffer.acquire().is_some());
    });
}

#[test]
fn too_many_elements_and_failed_work_leave_the_slot_as_it_was() {
    on_every_device(|device| {
        let (stream, buffer) = (device.stream().unwrap(), TripleBuffer::<u64>::new(device, 10).unwrap());
        let refused = buffer.acquire().unwrap().upload(&stream, 11, |_| ()).unwrap_err();
        assert!(matches!(refused.error, GpuError::Range { len: 11, size: 10, .. }));
        let slot = refused.slot.upload(&stream, 10, |elements| elements.fill(1)).unwrap();
        slot.wait().unwrap();
        let failed =
            slot.process(&stream, |_, _| Err(GpuError::OutOfMemory { bytes: 1, free: 0 })).unwrap_err();
        assert!(failed.error.is_out_of_memory());
        failed.slot.wait().unwrap();
        let slot = failed.slot.process(&stream, |stream, elements| add(stream, elements, 1)).unwrap();
        slot.wait().unwrap();
        let slot = slot.download(&stream).unwrap();
        slot.wait().unwrap();
        assert_eq!(slot.finish(|elements| elements.to_vec()).unwrap().0, [2; 10]);
    });
}

#[test]
fn three_slots_keep_three_streams_at_work() {
    on_every_device(|device| {
        let buffer = TripleBuffer::<u64>::new(device, 1000).unwrap();
        let streams: Vec<_> = (0..3).map(|_| device.stream().unwrap()).collect();
        let (mut uploading, mut processing, mut downloading) =
            (VecDeque::new(), VecDeque::new(), VecDeque::new());
        let (mut next, mut results, mut most) = (0u64, Vec::new(), 0);
        // Until all three are taken the device does not get on with the first.
        let mut gate = Some(hold(&streams[1]));
        while results.len() < 30 {
            if next < 30
                && let Some(slot) = buffer.acquire()
            {
                uploading.push_back(slot.upload(&streams[0], 1000, |elements| elements.fill(next)).unwrap());
                next += 1;
            }
            most = most.max(buffer.states().iter().filter(|&&state| state != SlotState::Free).count());
            if most == 3 {
                gate = None;
            }
            if let Some(slot) = uploading.pop_front() {
                match slot.process(&streams[1], |stream, elements| add(stream, elements, 7)) {
                    Ok(slot) => processing.push_back(slot),
                    Err(early) => uploading.push_front(early.slot),
                }
            }
            if let Some(slot) = processing.pop_front() {
                match slot.download(&streams[2]) {
                    Ok(slot) => downloading.push_back(slot),
                    Err(early) => processing.push_front(early.slot),
                }
            }
            if let Some(slot) = downloading.pop_front() {
                match slot.finish(|elements| elements.to_vec()) {
                    Ok((elements, _)) => results.push(elements),
                    Err(early) => downloading.push_front(early.slot),
                }
            }
        }
        assert!(results.iter().enumerate().all(|(i, elements)| *elements == [i as u64 + 7; 1000]));
        assert!(gate.is_none(), "all slots are in use at the same time");
    });
}
