/** A LAP: no code of ours sends one, so that a test has to. */
import { gidFromIp } from '../../core/spi/index.js';
import type { CmLap } from '../../plugins/cm/wire/lap.js';

export const LAP: CmLap = {
  localCommId: 0x11223344,
  remoteCommId: 0x55667788,
  remoteQpn: 0x123456,
  remoteCmResponseTimeout: 20,
  alternateLocalLid: 0xffff,
  alternateRemoteLid: 0xffff,
  alternateLocalGid: gidFromIp('10.0.1.1'),
  alternateRemoteGid: gidFromIp('10.0.1.2'),
  alternateFlowLabel: 0,
  alternateTrafficClass: 0,
  alternateHopLimit: 64,
  alternatePacketRate: 0,
  alternateSl: 0,
  alternateSubnetLocal: 0,
  alternateLocalAckTimeout: 18,
  privateData: new Uint8Array(0),
};
