/** What polling is to sockets of Node: an event loop that does not sleep. */
import type { Cell } from './cells.js';

export class AwakeLoop {
  private awake = false;

  /** @param inNextTurn runs a function in the next turn of the event loop */
  constructor(private readonly inNextTurn: (work: () => void) => unknown = setImmediate) {}

  /** It sleeps as ever where the cell's polling is not 'spin'. */
  begin({ polling }: Cell): void {
    if (polling !== 'spin' || this.awake) return;
    this.awake = true;
    const turn = (): void => {
      if (this.awake) this.inNextTurn(turn);
    };
    turn();
  }

  end(): void {
    this.awake = false;
  }
}
