/**
 * What is given back once no packet on its way refers to it: regions and paths to the port, the
 * memory of queue pairs, where inline payload is read when its packet leaves, to the slab.
 */
export class PortReleases {
  private waiting: (() => void)[] = [];

  /** @param onItsWay packets that the port has not taken */
  constructor(private readonly onItsWay: () => number) {}

  /** At once when nothing is on its way. */
  add(release: () => void): void {
    this.waiting.push(release);
    if (this.onItsWay() === 0) this.run();
  }

  /** Nothing is on its way. */
  run(): void {
    if (this.waiting.length === 0) return;
    const { waiting } = this;
    this.waiting = [];
    for (const release of waiting) release();
  }
}
