/** Two adapters of mock, and connections between them, whose time moves by itself. */
import assert from 'node:assert/strict';
import {
  type Connection,
  type ConnectionOptions,
  connect,
  FlowError,
  listen,
  type Listener,
  type ListenOptions,
} from '../../core/flow/index.js';
import { type Ia, openIa } from '../../core/index.js';
import { Fabric, type FabricOptions, mock } from '../../providers/mock/index.js';

export const CLIENT = '192.0.2.1';
export const SERVER = '192.0.2.2';
export const PORT = 7471;

export interface FlowWorld {
  readonly fabric: Fabric;
  readonly client: Ia;
  readonly server: Ia;
  close(): Promise<void>;
}

export async function flowWorld(options: FabricOptions = {}): Promise<FlowWorld> {
  const fabric = new Fabric({ seed: 1, autoRun: true, ...options });
  const client = await openIa(mock({ fabric, address: CLIENT }));
  const server = await openIa(mock({ fabric, address: SERVER }));
  const close = async (): Promise<void> => {
    await Promise.all([client.close(), server.close()]);
  };
  return { fabric, client, server, close };
}

export interface FlowPair extends FlowWorld {
  readonly listener: Listener;
  /** The side that has connected. */
  readonly near: Connection;
  /** The side that has accepted. */
  readonly far: Connection;
}

/** A connection of two sides, which may differ. */
export async function flowPair(
  near: ConnectionOptions = {},
  far: ListenOptions = near,
  fabric: FabricOptions = {},
): Promise<FlowPair> {
  const world = await flowWorld(fabric);
  const listener = await listen(world.server, { port: PORT, ...far });
  const [one, other] = await Promise.all([
    connect(world.client, { ...near, address: SERVER, port: PORT }),
    listener.accept(),
  ]);
  return { ...world, listener, near: one, far: other };
}

/** The error of a call that fails. */
export async function failureOf(promise: Promise<unknown>): Promise<FlowError> {
  const error = await promise.then(
    (value) => assert.fail(`resolved with ${String(value)}`),
    (reason: unknown) => reason,
  );
  assert.ok(FlowError.isFlowError(error), String(error));
  return error;
}

export const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
export const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/** Objects of an adapter that the front has made and not freed. */
export function leftOf(ia: Ia): string {
  const { eps, lmrs, pzs, evds, psps } = JSON.parse(JSON.stringify(ia)) as Record<string, number>;
  return `eps ${eps} lmrs ${lmrs} pzs ${pzs} evds ${evds} psps ${psps}`;
}

/** An adapter with nothing but its own event dispatcher. */
export const NOTHING_LEFT = 'eps 0 lmrs 0 pzs 0 evds 1 psps 0';
