/** Pairs of in-memory ports, for the suite of ports and for the processes that it starts. */
import type { PacketPortFixture } from 'dapl/testing';
import { Fabric } from '../../../providers/mock/fabric.js';

const SILENT = { ipv4: '10.0.0.77', ipv6: 'fd00::77' };

export const fixture: PacketPortFixture = {
  capabilities: [
    'ipv4',
    'ipv6',
    'unreachable-ipv4',
    'unreachable-ipv6',
    'groups-ipv4',
    'groups-ipv6',
    'addresses-ipv4',
    'addresses-ipv6',
    'process',
  ],
  openPair(family) {
    const fabric = new Fabric({ autoRun: true, mtuBytes: 4096 });
    const [one, two, three] =
      family === 'ipv4' ? ['10.0.0.1', '10.0.0.2', '10.0.0.3'] : ['fd00::1', 'fd00::2', 'fd00::3'];
    const a = fabric.openPort({ addresses: [one ?? ''] });
    const b = fabric.openPort({ addresses: [two ?? '', three ?? ''] });
    const [module, silentAddress] = [import.meta.url, SILENT[family]];
    return Promise.resolve({ a, b, module, silentAddress });
  },
};
