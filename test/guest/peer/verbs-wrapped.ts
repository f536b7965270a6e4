// What may stand over a provider, all of it over the verbs provider and a real device, both ends in
// one process: the guard of the contract, an observer, trace, metrics and faults of sends.
//   node verbs-wrapped.js ADDRESS [device]
// Says "all checks passed"; exit code 1 when something is wrong.
import assert from 'node:assert/strict';
import { openIa } from 'dapl';
import { type Connection, connect, listen } from 'dapl/flow';
import { faults } from 'dapl/plugins/faults';
import { metrics, toPrometheus } from 'dapl/plugins/metrics';
import { trace } from 'dapl/plugins/trace';
import { verbs } from 'dapl/providers/verbs';
import { type ConfiguredProvider, WcStatus, WrOpcode } from 'dapl/spi';
import { observe, strict } from 'dapl/spi/decorators';
import * as promClient from 'prom-client';

const [address = '', device = 'rxe0'] = process.argv.slice(2);
const BYTES = 30_000;
const PORT = 7471;

const breaches: string[] = [];
const lines: string[] = [];
const register = new promClient.Registry();
let writesSeen = 0;

const guarded = (provider: ConfiguredProvider): ConfiguredProvider =>
  strict(provider, ({ message }) => void breaches.push(message));
const faulty = faults(guarded(verbs({ device })));
const observed = observe(faulty.provider, {
  posted: ({ opcode }) => void (opcode === WrOpcode.RDMA_WRITE && writesSeen++),
});
const traced = trace(observed, { write: ({ text }) => void lines.push(text) });
const active = await openIa(metrics(traced, toPrometheus(promClient, { register })));
const passive = await openIa(guarded(verbs({ address })));
const listener = await listen(passive, { port: PORT });

async function meet(): Promise<[Connection, Connection]> {
  const connecting = connect(active, { address, port: PORT });
  const accepted = await listener.accept();
  return [await connecting, accepted];
}

assert.throws(() => faulty.packets.add({ action: { type: 'drop' } }), { code: 'EOPNOTSUPP' });

const [conn, peer] = await meet();
const memory = peer.expose(BYTES, 'write');
await conn.write(Buffer.alloc(BYTES, 7), memory);
assert.ok(memory.bytes.every((byte) => byte === 7));
await conn.send(Buffer.from('written'));
assert.equal(Buffer.from((await peer.receive()).bytes).toString(), 'written');

faulty.sends.add({
  match: { opcode: WrOpcode.RDMA_WRITE },
  action: { type: 'fail', status: WcStatus.REM_ACCESS_ERR },
});
await assert.rejects(conn.write(Buffer.alloc(BYTES, 9), memory), { code: 'DAT_CONN_BROKEN' });
assert.ok(
  memory.bytes.every((byte) => byte === 7),
  'a request that fails is not sent',
);
faulty.assertFaultsHit();
await Promise.all([conn.close(), peer.close()]);

const counted = await register.metrics();
await listener.close();
await Promise.all([active.close(), passive.close()]);

assert.equal(writesSeen, 2);
assert.match(counted, /completions_total\{.*opcode="RDMA_WRITE",status="SUCCESS"\} 1\n/);
assert.match(counted, /completions_total\{.*opcode="RDMA_WRITE",status="[A-Z_]+_ERR"\} 1\n/);
assert.match(counted, /connection_events_total\{.*event="established"\} 1\n/);
assert.ok(lines.some((line) => /send \d+: RDMA_WRITE, 30000 bytes/.test(line)));
assert.ok(lines.some((line) => /established$/.test(line)));
assert.deepEqual(breaches, []);
console.log('all checks passed');
