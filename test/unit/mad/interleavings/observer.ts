/** What must be true of the handlers' calls, whatever happens when. */
import assert from 'node:assert/strict';
import { type MadSendResult, type ReceivedMad, WcStatus } from '../../../../core/spi/index.js';

interface Sent {
  responses: number;
  reports: number;
}

export class Observer {
  readonly sent = new Map<string, Sent>();
  /** Agents that have called `unregister`; for which it has resolved. */
  readonly unregistered = new Set<string>();
  readonly ended = new Set<string>();
  /** The first thing that was wrong: the module swallows what handlers throw. */
  violation: unknown;
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
    this.check(() => {
      this.onHandler(agent, 'receive handler');
      assert.ok(!this.unregistered.has(agent), `receive handler of ${agent} after unregister`);
      if (!request) return;
      const name = String(request.context);
      const sent = this.of(name);
      assert.equal(sent.reports, 0, `response to ${name} after its report`);
      sent.responses++;
      assert.equal(sent.responses, 1, `${name} has two responses`);
    });
  }

  onSend(agent: string, { handle, status }: MadSendResult): void {
    this.check(() => {
      const name = String(handle.context);
      this.onHandler(agent, 'send handler');
      const sent = this.of(name);
      sent.reports++;
      assert.equal(sent.reports, 1, `${name} is reported twice`);
      if (sent.responses > 0) assert.equal(status, WcStatus.SUCCESS, `${name} was answered`);
    });
  }

  /** A MAD of the agent's has gone to the device. */
  onTransmit(agent: string): void {
    assert.ok(!this.unregistered.has(agent), `a MAD of ${agent} is posted after unregister`);
  }

  assertAllReported(when: string): void {
    for (const [name, { reports }] of this.sent) assert.equal(reports, 1, `${name} ${when}`);
  }

  get allReported(): boolean {
    return [...this.sent.values()].every(({ reports }) => reports > 0);
  }

  private check(what: () => void): void {
    try {
      what();
    } catch (error) {
      this.violation ??= error;
    }
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
