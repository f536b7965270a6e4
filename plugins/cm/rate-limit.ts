/** A token bucket: `burst` at once, `perSecond` in the long run. */
export class RateLimit {
  private tokens: number;
  private atUs = 0;

  constructor(
    private readonly perSecond: number,
    private readonly burst: number,
  ) {
    this.tokens = burst;
  }

  take(nowUs: number): boolean {
    const earned = ((nowUs - this.atUs) * this.perSecond) / 1e6;
    this.tokens = Math.min(this.burst, this.tokens + earned);
    this.atUs = nowUs;
    if (this.tokens < 1) return false;
    this.tokens--;
    return true;
  }
}
