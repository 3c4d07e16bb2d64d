/** The slot of a key in a Redis Cluster, by the published rule: CRC16 of what is in the first braces, modulo 16,384. */
export function keySlot(key: string): number {
  const open = key.indexOf("{");
  const close = key.indexOf("}", open + 1);
  const tagged = open >= 0 && close > open + 1;
  return crc16(tagged ? key.slice(open + 1, close) : key) % 16_384;
}

/** CRC-16/XMODEM. */
export function crc16(text: string): number {
  let crc = 0;
  for (const byte of Buffer.from(text)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc & 0x80_00 ? (crc << 1) ^ 0x10_21 : crc << 1) & 0xff_ff;
  }
  return crc;
}
