/**
 * Our side of perftest's programs with -R, over a provider:
 *
 *     verbs-perftest <verbs | softroce> client <server> <program> <bytes> <iterations> <mtu> [own]
 *     verbs-perftest <verbs | softroce> server <own>    <program> <bytes> <iterations> <mtu>
 *
 * Programs are ib_send_lat, ib_write_lat, ib_write_bw and ib_read_bw. It prints `done`, and as a
 * server of bandwidth what the client has said.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cr, type Evd, type Ia, localAddressToward, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { verbs } from 'dapl/providers/verbs';

import { patience } from '../../support/patience.js';
import { End } from '../../../bench/verbs/end.js';
import { measure, serve, WARM_UP } from '../../../bench/verbs/loops.js';
import { isLatency, type Target, TESTS, type Work, workOf } from '../../../bench/verbs/workload.js';
import { Control, type Destination, PERFTEST_PORT, type Role } from './perftest-control.js';

const TIMEOUT_MS = patience(60_000);
/** The server listens anew for the connection that is measured, after it has told the client. */
const ATTEMPTS = { most: 50, delayMs: 200 } as const;

class Session {
  private constructor(
    private readonly role: Role,
    private readonly work: Work,
    private readonly control: Control,
    private readonly end: End,
  ) {}

  static async connect(ia: Ia, address: string, work: Work, mtuBytes: number): Promise<Session> {
    const control = new Control(ia, 'client');
    await control.connect(address);
    await control.introduce(mtuBytes);
    await control.shakeHands();
    for (let attempt = 1; ; attempt++) {
      const end = new End(ia, work);
      try {
        const established = end.established();
        end.ep.connect({ address, connQual: PERFTEST_PORT, timeoutMs: TIMEOUT_MS });
        await established;
        return new Session('client', work, control, end);
      } catch (error) {
        await end.free();
        if (attempt === ATTEMPTS.most) throw error;
        await sleep(ATTEMPTS.delayMs);
      }
    }
  }

  static async accept(ia: Ia, work: Work, mtuBytes: number): Promise<Session> {
    const requests = ia.createEvd({ qlen: 8 });
    const psp = ia.createPsp({ connQual: PERFTEST_PORT, evd: requests });
    process.stdout.write('listening\n');
    const control = new Control(ia, 'server');
    await control.accept(await nextRequest(requests, Infinity));
    await control.introduce(mtuBytes);
    await control.shakeHands();
    const end = new End(ia, work);
    const established = end.established();
    (await nextRequest(requests, TIMEOUT_MS)).accept(end.ep);
    await established;
    psp.free();
    return new Session('server', work, control, end);
  }

  async run(): Promise<void> {
    const { control, end, role, work } = this;
    await control.shakeHands();
    const { address, rmrContext } = end.target(PERFTEST_PORT);
    const mine: Destination = { address: BigInt(`0x${address}`), rkey: rmrContext };
    // Before it sends, a latency test says once more that its memory and receives are there.
    const times = isLatency(work.test) ? 4 : 3;
    let theirs = mine;
    for (let time = 0; time < times; time++) theirs = await control.shakeHands(mine);
    const target = { port: 0, address: theirs.address.toString(16), rmrContext: theirs.rkey };
    if (work.test === 'ib_write_lat') {
      await this.writeInTurn(target);
    } else {
      if (role === 'client') await this.ask(target);
      else await this.answer(target);
      await control.shakeHands(mine);
    }
    await end.free();
    process.stdout.write('done\n');
  }

  /** The server of ib_write_lat writes first, and nothing is said in the end: one side leaves. */
  private async writeInTurn(target: Target): Promise<void> {
    if (this.role === 'server') {
      await measure(this.end, target);
    } else {
      await serve(this.end, target);
      await this.control.ended();
    }
  }

  private async ask(target: Target): Promise<void> {
    const result = await measure(this.end, target);
    if (!('mibps' in result)) return;
    await this.control.shakeHands();
    const { bytes, iterations } = this.work;
    await this.control.exchangeReports({ bytes, iterations, ...result });
  }

  private async answer(target: Target): Promise<void> {
    if (isLatency(this.work.test)) {
      void serve(this.end, target);
      return;
    }
    await this.control.shakeHands();
    const report = await this.control.exchangeReports({ ...this.work, mibps: 0 });
    const { bytes, iterations, mibps } = report;
    const rate = `${mibps.toFixed(2)} MiB/s`;
    process.stdout.write(`it says ${iterations} of ${bytes} B, on average ${rate}\n`);
    const isWritten = this.end.sink.bytes.some((byte) => byte !== 0);
    process.stdout.write(`our memory is ${isWritten ? '' : 'not '}written\n`);
  }
}

async function nextRequest(requests: Evd, timeoutMs: number): Promise<Cr> {
  const { event } = await requests.wait({ timeoutMs });
  if (event.type !== 'connection-request') throw new Error(`a ${event.type} event at the psp`);
  return event.cr;
}

const [provider, role, address = '', program, bytes, iterations, mtu, from] = process.argv.slice(2);
const test = TESTS.find((name) => name === program);
if (test === undefined) throw new Error(`no program ${program}`);
const own = role === 'server' ? address : (from ?? (await localAddressToward(address)));
const ia = await openIa(
  provider === 'verbs' ? verbs({ address: own }) : softroce({ addresses: [own] }),
);
const warmUp = isLatency(test) ? WARM_UP : 0;
const work = { ...workOf(test, Number(bytes)), iterations: Number(iterations) - warmUp };
try {
  const session = await (role === 'server'
    ? Session.accept(ia, work, Number(mtu))
    : Session.connect(ia, address, work, Number(mtu)));
  await session.run();
} catch (error) {
  process.stderr.write(
    `verbs-perftest: ${error instanceof Error ? error.message : String(error)}\n`,
  );
  process.exitCode = 1;
} finally {
  await ia.close('abrupt');
}
