/** The service points of a test: one for each endpoint. */
import type { Cr, Evd, Ia, Psp, Rsp } from 'dapl';

import type { Endpoint } from '../endpoint.js';

/** Time from the answer until the client connects; it may be busy with its other endpoints. */
const REQUEST_TIMEOUT_MS = 60_000;

/** Waits for the request of one connection. */
export class Service {
  private readonly requests: Evd;
  private readonly point: Psp | Rsp;

  /** @param useRsp true to reserve the endpoint for the connection */
  constructor(ia: Ia, { ep }: Endpoint, connQual: number, useRsp = false) {
    const evd = ia.createEvd({ qlen: 4 });
    this.requests = evd;
    this.point = useRsp ? ia.createRsp({ connQual, ep, evd }) : ia.createPsp({ connQual, evd });
  }

  async request(): Promise<Cr> {
    const { event } = await this.requests.wait({ timeoutMs: REQUEST_TIMEOUT_MS });
    if (event.type !== 'connection-request') throw new Error(`a ${event.type} event of a service`);
    this.point.free();
    return event.cr;
  }
}

/** Allocates ports to tests, one after the other, so that late packets find no listener. */
export class Ports {
  private readonly taken = new Set<number>();
  private nextPort: number;

  constructor(
    private readonly first: number,
    private readonly count: number,
  ) {
    this.nextPort = first;
  }

  /** The port to try first. */
  get next(): number {
    return this.nextPort;
  }

  /** Allocates ports in a row. @returns the first. @throws Error if none are left */
  take(count: number): number {
    for (let tried = 0; tried < this.count; tried++) {
      if (this.nextPort + count > this.first + this.count) this.nextPort = this.first;
      const start = this.nextPort++;
      const ports = range(start, count);
      if (ports.some((port) => this.taken.has(port) || port >= this.first + this.count)) continue;
      for (const port of ports) this.taken.add(port);
      this.nextPort = start + count;
      return start;
    }
    throw new Error(`${count} ports are needed, but ${this.count - this.taken.size} are free`);
  }

  giveBack(first: number, count: number): void {
    for (const port of range(first, count)) this.taken.delete(port);
  }
}

export function range(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => first + index);
}
