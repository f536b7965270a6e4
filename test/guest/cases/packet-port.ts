// Our native packet port against the kernel, with nothing above it: connection requests for a port
// where nobody listens, sent as one train; rxe must take each packet of it and ib_cm reject each
// request. This is where ICRC, IP identifications of a train, and IPv6 without checksums are
// decided.
import assert from 'node:assert/strict';

import { machineTime } from '../machine-time.js';
import {
  type Gid,
  gidFromIp,
  PortSpace,
  RX,
  serviceIdOf,
  TX,
  TX_SEGMENT,
} from '../../../core/spi/index.js';
import { emitCmMad, parseCmMad } from '../../../plugins/cm/wire/message.js';
import { REJECT_REASON } from '../../../plugins/cm/wire/rej.js';
import { type CmReq, NO_ALTERNATE_PATH, ROCE_LID } from '../../../plugins/cm/wire/req.js';
import { BTH_LENGTH, writeBth } from '../../../core/spi/wire/bth.js';
import { DETH_LENGTH, writeDeth } from '../../../providers/hca/wire/extended-headers.js';
import { openNativePort } from '../../../providers/softroce/port/native-port.js';
import type { SocketPort } from '../../../providers/softroce/port/port-options.js';
import type { Lab } from '../lab.js';
import type { Case } from '../suite.js';
import { CM_ATTRIBUTE } from '../tshark.js';
import { checkCapture } from '../wire-check.js';

const UD_SEND_ONLY = 0x64;
const GSI_QPN = 1;
const GSI_QKEY = 0x80010000;
const MAD_BYTES = 256;
const REQUESTS = 7;
const CLOSED_PORT = 9;
const TIMEOUT_MS = 5000;

export function packetPortCases(lab: Lab, version: string): Case[] {
  return (['ipv4', 'ipv6'] as const).map((family): Case => {
    const transport = `UD, ${family === 'ipv4' ? 'IPv4' : 'IPv6'}`;
    return {
      name: `packet port: a train of requests to a closed port, ${transport}`,
      row: { counterpart: 'ib_cm', version, role: 'packet port', transport, mtuBytes: 1024 },
      run: () => requestsToClosedPort(lab, family),
    };
  });
}

async function requestsToClosedPort(lab: Lab, family: 'ipv4' | 'ipv6'): Promise<void> {
  const guest = lab.guest(0);
  await lab.setPathMtu(1024);
  const capture = await lab.capture(`port-${family}`, guest);
  const port = openNativePort({ addresses: [lab.host[family]] });
  try {
    sendRequests(port, gidFromIp(guest[family]));
    const rejected = await receiveRejects(port);
    assert.deepEqual(
      [...rejected].sort((a, b) => a - b),
      Array.from({ length: REQUESTS }, (_, index) => commId(index)),
    );
    assert.equal(port.counters.badIcrc, 0);
    assert.equal(port.counters.sentTrains, 1, 'not sent as one train');
  } finally {
    await port.close();
    await capture.stop();
  }
  const attributes = (await checkCapture(capture.file)).map(({ cmAttribute }) => cmAttribute);
  for (const attribute of [CM_ATTRIBUTE.REQ, CM_ATTRIBUTE.REJ]) {
    assert.equal(attributes.filter((one) => one === attribute).length, REQUESTS);
  }
}

function commId(index: number): number {
  return 0x1000 + index;
}

function sendRequests(port: SocketPort, remoteGid: Gid): void {
  const mads = new Uint8Array(REQUESTS * MAD_BYTES);
  const region = port.addRegion(mads.buffer, 0, mads.length);
  const path = port.addPath(remoteGid, 0);
  const headers = new DataView(port.txPackets.buffer, port.txPackets.byteOffset);
  for (let index = 0; index < REQUESTS; index++) {
    const offset = index * MAD_BYTES;
    const localGid = port.gids[0];
    assert.ok(localGid !== undefined);
    const body = request(index, localGid, remoteGid);
    const mad = { transactionIdHi: 7, transactionIdLo: index, attributeModifier: 0 };
    emitCmMad(
      { ...mad, message: { name: 'REQ', body } },
      mads.subarray(offset, offset + MAD_BYTES),
    );
    port.txPackets.set([path, BTH_LENGTH + DETH_LENGTH, index, 1], index * TX.WORDS);
    port.txSegments.set([region, offset, 0, MAD_BYTES], index * TX_SEGMENT.WORDS);
    const header = (index * TX.WORDS + TX.HEADER) * 4;
    writeBth(headers, header, UD_SEND_ONLY, 0, GSI_QPN, index);
    writeDeth(headers, header + BTH_LENGTH, GSI_QKEY, GSI_QPN);
  }
  assert.equal(port.send(0, REQUESTS), REQUESTS);
}

/** Communication ids of the rejected requests, once all have come or time is up. */
async function receiveRejects(port: SocketPort): Promise<Set<number>> {
  const rejected = new Set<number>();
  await new Promise<void>((resolve) => {
    const cancel = machineTime.after(TIMEOUT_MS, resolve);
    port.watch({
      onReadable: () => {
        const count = port.receive();
        for (let index = 0; index < count; index++) rejected.add(rejectIn(port, index));
        if (rejected.size < REQUESTS) return;
        cancel();
        resolve();
      },
      onWritable: () => undefined,
      onReport: () => undefined,
    });
  });
  return rejected;
}

function rejectIn(port: SocketPort, index: number): number {
  const word = (name: 'OFFSET' | 'LENGTH'): number =>
    port.rxPackets[index * RX.WORDS + RX[name]] ?? 0;
  const start = word('OFFSET') + BTH_LENGTH + DETH_LENGTH;
  const end = word('OFFSET') + word('LENGTH');
  const parsed = parseCmMad(port.rxArena.slice(start, end));
  assert.ok(parsed?.message.name === 'REJ', `not a REJ: ${JSON.stringify(parsed?.message.name)}`);
  assert.equal(parsed.message.body.reason, REJECT_REASON.INVALID_SERVICE_ID);
  return parsed.message.body.remoteCommId;
}

/** What rdma_cm would send for RC and a port; only the service matters to a kernel without it. */
function request(index: number, localGid: Gid, remoteGid: Gid): CmReq {
  return {
    localCommId: commId(index),
    vendorId: 0,
    serviceId: serviceIdOf(PortSpace.TCP, CLOSED_PORT),
    localCaGuid: 0x0200_0000_0000_0001n,
    localQkey: 0,
    localQpn: 0x100 + index,
    responderResources: 1,
    localEecn: 0,
    initiatorDepth: 1,
    remoteEecn: 0,
    remoteCmResponseTimeout: 20,
    transportServiceType: 0,
    endToEndFlowControl: 0,
    startingPsn: 0,
    localCmResponseTimeout: 20,
    retryCount: 7,
    partitionKey: 0xffff,
    pathMtu: 3,
    rdcExists: 0,
    rnrRetryCount: 7,
    maxCmRetries: 15,
    srq: 0,
    extendedTransportType: 0,
    primaryLocalLid: ROCE_LID,
    primaryRemoteLid: ROCE_LID,
    primaryLocalGid: localGid,
    primaryRemoteGid: remoteGid,
    primaryFlowLabel: 0,
    primaryPacketRate: 0,
    primaryTrafficClass: 0,
    primaryHopLimit: 64,
    primarySl: 0,
    primarySubnetLocal: 0,
    primaryLocalAckTimeout: 19,
    ...NO_ALTERNATE_PATH,
    sapSupported: 0,
    privateData: new Uint8Array(92),
  };
}
