/** The 5-bit RNR NAK timer codes in microseconds (IBTA 9.7.5.2.8). Code 0 is the longest. */
export const RNR_TIMER_US: readonly number[] = [
  655_360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1_280, 1_920, 2_560, 3_840,
  5_120, 7_680, 10_240, 15_360, 20_480, 30_720, 40_960, 61_440, 81_920, 122_880, 163_840, 245_760,
  327_680, 491_520,
];

/** Waiting time in microseconds; only the low 5 bits of the code count. */
export function rnrTimerUs(timerCode: number): number {
  return RNR_TIMER_US[timerCode & 0x1f] ?? 0;
}
