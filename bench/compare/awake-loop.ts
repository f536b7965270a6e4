/** What polling is to sockets of Node: an event loop that does not sleep. */
import type { Cell } from './cells.js';

export class AwakeLoop {
  private awake = false;

  /** It sleeps as ever where the cell's polling is not 'spin'. */
  begin({ polling }: Cell): void {
    if (polling !== 'spin' || this.awake) return;
    this.awake = true;
    const turn = (): void => {
      if (this.awake) setImmediate(turn);
    };
    turn();
  }

  end(): void {
    this.awake = false;
  }
}
