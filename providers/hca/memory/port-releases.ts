/**
 * Resources released once no packet in flight refers to them. Regions and paths go back to the
 * port. The memory of queue pairs goes back to the slab: inline payload is read there when its
 * packet leaves.
 */
export class PortReleases {
  private waiting: (() => void)[] = [];

  /** @param onItsWay packets that the port has not taken */
  constructor(private readonly onItsWay: () => number) {}

  /** Runs at once when nothing is in flight. */
  add(release: () => void): void {
    this.waiting.push(release);
    if (this.onItsWay() === 0) this.run();
  }

  /** Nothing is in flight. */
  run(): void {
    if (this.waiting.length === 0) return;
    const { waiting } = this;
    this.waiting = [];
    for (const release of waiting) release();
  }
}
