//! Whole numbers as the script reads and writes them: doubles, the lowest byte first.

pub(super) fn pack(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// None if they are not numbers.
pub(super) fn unpack(bytes: &[u8]) -> Option<Vec<f64>> {
    let chunks = bytes.chunks_exact(8);
    let whole = chunks.remainder().is_empty();
    let numbers = chunks.map(|chunk| f64::from_le_bytes(chunk.try_into().expect("8 bytes")));
    whole.then(|| numbers.collect())
}
