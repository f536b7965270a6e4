/** Formats sizes and rates. */

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** "1 byte", "12.3 KiB", "256.0 MiB". */
export function sizeText(bytes: number): string {
  const unit = unitOf(bytes);
  return bytes === 1 ? '1 byte' : `${inUnit(bytes, unit)} ${UNITS[unit]!}`;
}

/** "12.0 of 256.0 MiB": both in the unit of the whole. */
export function partText(bytes: number, totalBytes: number): string {
  return `${inUnit(bytes, unitOf(totalBytes))} of ${sizeText(totalBytes)}`;
}

/** "81.3 MiB/s". */
export function rateText(bytes: number, seconds: number): string {
  return `${sizeText(Math.round(bytes / Math.max(seconds, 1e-3)))}/s`;
}

function unitOf(bytes: number): number {
  const unit = Math.floor(Math.log2(Math.max(bytes, 1)) / 10);
  return Math.min(unit, UNITS.length - 1);
}

function inUnit(bytes: number, unit: number): string {
  return (bytes / 1024 ** unit).toFixed(unit === 0 ? 0 : 1);
}
