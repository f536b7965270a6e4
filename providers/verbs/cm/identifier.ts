/** Creates identifiers of librdmacm; a failure leaves none behind. */
import { type CmConnectOptions, type CmResolveOptions, SpiError } from '../../../core/spi/index.js';
import { serviceOf, type SocketAddress } from './address.js';
import type { CmServices } from './connection.js';

/**
 * An identifier, after the calls of `prepare` on it.
 * @throws SpiError of rdma_create_id, or what `prepare` throws
 */
export function makeId(
  services: CmServices,
  portSpace: number,
  prepare: (id: number) => void,
  channel = services.channel,
): number {
  const id = services.calls.createId(channel, portSpace);
  try {
    prepare(id);
    return id;
  } catch (error) {
    services.destroyId(id);
    throw error;
  }
}

/**
 * Creates an identifier that resolves a route to a peer, with that route in words.
 * @throws SpiError: no way, or what rdma_cm refuses at once
 */
export function idTowards(
  services: CmServices,
  { serviceId, remoteGid, localGidIndex }: CmConnectOptions | CmResolveOptions,
  prepare: (id: number) => void = () => undefined,
): { readonly id: number; readonly way: string } {
  const { calls, addresses, resolveTimeoutMs } = services;
  const { portSpace, port } = serviceOf(serviceId);
  const { source, destination } = addresses.pathTo(remoteGid, port, localGidIndex);
  const id = makeId(services, portSpace, (made) => {
    prepare(made);
    calls.resolveAddress(made, source, destination, resolveTimeoutMs);
  });
  const from = source?.text ?? 'where the route leads from';
  return { id, way: `${destination.text} from ${from}` };
}

/** @throws SpiError of rdma_bind_addr; ('ENODEV') when the address is another device's */
export function bindTo({ calls, device }: CmServices, id: number, address: SocketAddress): void {
  calls.bindAddress(id, address);
  const bound = calls.deviceName(id);
  if (bound === device.name) return;
  throw new SpiError('ENODEV', `${address.text} is bound to ${bound ?? 'no device'}`);
}

/**
 * The route may lead through another device than the queue pair's.
 * @throws SpiError('ENETUNREACH')
 */
export function checkDevice({ calls, device }: CmServices, id: number): void {
  const found = calls.deviceName(id);
  if (found === device.name) return;
  throw new SpiError(
    'ENETUNREACH',
    `the route leads through ${found ?? 'no RDMA device'}, not ${device.name}`,
  );
}
