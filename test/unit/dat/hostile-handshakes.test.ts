/**
 * Every field of the messages that make a connection, at its extremes: no call that the states of
 * its objects allow throws, and a good peer is served beside them and after.
 */
import assert from 'node:assert/strict';
import {
  DatError,
  DatEventNumber,
  type Ia,
  openIa,
  type UdAddressHandle,
  type UdEp,
} from '../../../core/index.js';
import { Fabric, mock, SeededRandom } from '../../../providers/mock/index.js';
import { type Edit, editsOf, Hostility, type HostileName } from '../../support/hostile-cm.js';

const [HERE, THERE] = ['192.0.2.1', '192.0.2.2'];
const CONN_QUAL = 7000;
const TIMEOUT_MS = 3000;
/** Of an attempt, the end of one that was accepted included. */
const ATTEMPT_US = 6_000_000;

/** One side is hostile; which one, the message says. */
class Scene {
  readonly hostility: Hostility;
  readonly faults: unknown[] = [];
  private constructor(
    name: HostileName,
    readonly fabric: Fabric,
    readonly client: Ia,
    readonly server: Ia,
    hostility: Hostility,
  ) {
    this.hostility = hostility;
  }

  static async open(name: HostileName): Promise<Scene> {
    const fabric = new Fabric({ seed: 36, autoRun: false });
    const hostility = new Hostility(name);
    const [client, server] = [mock({ fabric, address: HERE }), mock({ fabric, address: THERE })];
    const asks = name === 'REQ' || name === 'SIDR_REQ';
    return new Scene(
      name,
      fabric,
      await openIa(asks ? hostility.provider(client) : client),
      await openIa(asks ? server : hostility.provider(server)),
      hostility,
    );
  }

  /** A legal call: what it throws is the peer's doing. */
  legal(call: () => unknown): void {
    try {
      call();
    } catch (error) {
      this.faults.push({ edit: this.hostility.last, error });
    }
  }

  /** Accepts whatever comes, by endpoints and by an XRC domain. */
  async accept(xrc: boolean): Promise<void> {
    const { server } = this;
    const pz = server.createPz();
    const domain = xrc ? await server.openXrcDomain() : undefined;
    server.createPsp({ connQual: CONN_QUAL, xrc }).requests$.subscribe(({ cr }) => {
      this.legal(() => {
        if (domain) {
          domain.accept(cr);
          return;
        }
        const ep = server.createEndpoint({ pz });
        ep.connection$.subscribe();
        cr.accept(ep);
      });
    });
  }

  /** @returns how it ended, and that it ended */
  async connect(xrc: boolean, edit?: Edit): Promise<string> {
    const { client, fabric } = this;
    if (edit) this.hostility.add(edit);
    const pz = client.createPz();
    const evd = client.createEvd({ qlen: 16 });
    const evds = { requestEvd: evd, connectEvd: evd };
    const ep = xrc
      ? (await client.openXrcDomain()).createInitiator({ pz, ...evds })
      : client.createEndpoint({ pz, ...evds, recvEvd: evd });
    ep.connect({ address: THERE, connQual: CONN_QUAL, timeoutMs: TIMEOUT_MS });
    let number: number | undefined;
    await fabric.run({ until: () => (number = evd.dequeue()?.number) !== undefined });
    if (number === DatEventNumber.ESTABLISHED) this.legal(() => ep.disconnect());
    await fabric.run({ forUs: ATTEMPT_US });
    ep.free();
    return String(number);
  }

  /** Answers every question, and asks one, as one who sends to what is answered. */
  async resolve(service: UdEp, asker: UdEp, edit?: Edit): Promise<boolean> {
    if (edit) this.hostility.add(edit);
    let outcome: UdAddressHandle | DatError | undefined;
    asker.resolve({ address: THERE, connQual: CONN_QUAL, timeoutMs: TIMEOUT_MS }).then(
      (address) => (outcome = address),
      (error: unknown) => {
        if (DatError.isDatError(error)) outcome = error;
        else throw error;
      },
    );
    await this.fabric.run({ until: () => outcome !== undefined });
    if (DatError.isDatError(outcome)) return false;
    const to = outcome as UdAddressHandle;
    assert.ok(to.qpn >= 2);
    this.legal(() => asker.postSendUd([], to));
    await this.fabric.run({ forUs: 1000 });
    return to.qpn === service.qpn;
  }

  async close(): Promise<void> {
    const closed = Promise.all([this.client.close('abrupt'), this.server.close('abrupt')]);
    await this.fabric.run({ forUs: 10_000_000 });
    await closed;
  }
}

describe('Hostile handshakes', () => {
  for (const name of ['REQ', 'REP'] as const) {
    for (const xrc of [false, true]) {
      it(`${name} to ${xrc ? 'an XRC domain' : 'endpoints'}: no legal call throws`, async () => {
        const scene = await Scene.open(name);
        await scene.accept(xrc);
        const edits = editsOf(name, new SeededRandom(36));
        for (const edit of edits) await scene.connect(xrc, edit);
        assert.equal(scene.hostility.made.size, edits.length);
        assert.deepEqual(scene.faults, []);
        assert.equal(await scene.connect(xrc), String(DatEventNumber.ESTABLISHED));
        await scene.close();
      });
    }
  }

  for (const name of ['SIDR_REQ', 'SIDR_REP'] as const) {
    it(`${name}: no legal call throws, no handle names queue pair 0 or 1`, async () => {
      const scene = await Scene.open(name);
      const [service, asker] = [scene.server, scene.client].map((ia) => {
        const evd = ia.createEvd({ qlen: 512 });
        return ia.createUdEndpoint({ pz: ia.createPz(), requestEvd: evd, recvEvd: evd });
      });
      assert.ok(service && asker);
      service.serve({ connQual: CONN_QUAL });
      const edits = editsOf(name, new SeededRandom(36));
      for (const edit of edits) await scene.resolve(service, asker, edit);
      assert.equal(scene.hostility.made.size, edits.length);
      assert.deepEqual(scene.faults, []);
      assert.equal(await scene.resolve(service, asker), true);
      await scene.close();
    });
  }
});
