/** Management datagrams of an application's own: short ones, long ones, and what goes wrong. */
import assert from 'node:assert/strict';
import { MadMethod } from 'dapl';
import type { Stage } from './scenario.js';
import { patience } from '../support/patience.js';

/** The dissector knows RMPP in the class of subnet administration only. */
const CLASSES = [
  { managementClass: 0x30, classVersion: 1, oui: 0x02da91 },
  { managementClass: 0x03, classVersion: 2 },
] as const;
type Class = (typeof CLASSES)[number];
/** Of no record that the dissector would look into. */
const ATTRIBUTE = 0x00f0;
const TIMEOUT_MS = patience(20_000);
/** One segment, two, and more than a window of 64. */
export const MAD_BYTES = [30, 300, 20_020] as const;

/** Request and response of these lengths, and a request that nobody takes. */
export async function playMads(stage: Stage): Promise<void> {
  for (const ofClass of CLASSES) await play(stage, ofClass);
}

async function play(stage: Stage, ofClass: Class): Promise<void> {
  const { passiveAddress: address } = stage;
  const asker = stage.active.mad.registerAgent({ ...ofClass, rmpp: true });
  const answerer = stage.passive.mad.registerAgent({
    ...ofClass,
    rmpp: true,
    methods: [MadMethod.GET],
  });
  answerer.requests$.subscribe((request) => {
    void request.respond({ data: request.data });
  });
  for (const bytes of MAD_BYTES) {
    const data = Uint8Array.from({ length: bytes }, (_, i) => i % 251);
    const ask = { address, attributeId: ATTRIBUTE, timeoutMs: TIMEOUT_MS, data };
    const response = await asker.request(ask);
    assert.deepEqual(Buffer.from(response.data), Buffer.from(data));
  }
  await answerer.unregister();
  const { status } = await asker.request({
    address,
    attributeId: ATTRIBUTE,
    timeoutMs: TIMEOUT_MS,
  });
  assert.notEqual(status, 0, 'nobody takes it');
  await asker.unregister();
}
