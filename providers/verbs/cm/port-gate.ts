/**
 * Holds calls that make the kernel send a message of the CM, until the port is up. While it is
 * down, no peer would receive the message. With rdma_rxe of Linux 6.1, no message of any process
 * leaves the device after one that has found no route: its queue pair 1 stays in error
 * (docs/verbs.md).
 */
export class PortGate {
  private waiting: (() => void)[] = [];

  /** @param isUp asked at each message: the port says so before its event comes */
  constructor(private readonly isUp: () => boolean) {}

  /** False: what would be sent now is to `wait`, behind what waits already. */
  get isOpen(): boolean {
    return this.waiting.length === 0 && this.isUp();
  }

  /** Runs it when the port is up. */
  wait(task: () => void): void {
    this.waiting.push(task);
  }

  /** The port is up, or it is not waited for any more. */
  release(): void {
    for (const task of this.waiting.splice(0)) task();
  }
}
