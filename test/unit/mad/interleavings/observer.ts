/** What must be true of the handlers' calls, whatever happens when. */
import assert from 'node:assert/strict';
import type { MadSendResult, ReceivedMad } from '../../../../core/spi/index.js';

interface Sent {
  responses: number;
  reports: number;
}

export class Observer {
  readonly sent = new Map<string, Sent>();
  /** Agents that have called `unregister`; for which it has resolved. */
  readonly unregistered = new Set<string>();
  readonly ended = new Set<string>();
  private inCall = 0;

  /** A call of the consumer's: no handler may run inside of it. */
  call<T>(what: () => T): T {
    this.inCall++;
    try {
      return what();
    } finally {
      this.inCall--;
    }
  }

  post(name: string): void {
    this.sent.set(name, { responses: 0, reports: 0 });
  }

  onReceive(agent: string, { request }: ReceivedMad): void {
    this.onHandler(agent, 'receive handler');
    assert.ok(!this.unregistered.has(agent), `receive handler of ${agent} after unregister`);
    if (!request) return;
    const sent = this.of(String(request.context));
    assert.equal(sent.reports, 0, `response to ${String(request.context)} after its report`);
    sent.responses++;
    assert.equal(sent.responses, 1, `${String(request.context)} has two responses`);
  }

  onSend(agent: string, { handle }: MadSendResult): void {
    this.onHandler(agent, 'send handler');
    const sent = this.of(String(handle.context));
    sent.reports++;
    assert.equal(sent.reports, 1, `${String(handle.context)} is reported twice`);
  }

  /** A MAD of the agent's has gone to the device. */
  onTransmit(agent: string): void {
    assert.ok(!this.unregistered.has(agent), `a MAD of ${agent} is posted after unregister`);
  }

  assertAllReported(when: string): void {
    for (const [name, { reports }] of this.sent) assert.equal(reports, 1, `${name} ${when}`);
  }

  private onHandler(agent: string, handler: string): void {
    assert.equal(this.inCall, 0, `${handler} of ${agent} inside a call of the consumer's`);
    assert.ok(!this.ended.has(agent), `${handler} of ${agent} after unregister has resolved`);
  }

  private of(name: string): Sent {
    const sent = this.sent.get(name);
    assert.ok(sent, name);
    return sent;
  }
}
