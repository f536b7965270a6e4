/** Packets captured from and to Linux rdma_rxe, from the IP header to the ICRC. */

export interface GoldenPacket {
  readonly name: string;
  /** Name in the opcode table. */
  readonly opcode: string;
  readonly hex: string;
}

export const GOLDEN_PACKETS: readonly GoldenPacket[] = [
  {
    name: 'v4 SEND only from rping',
    opcode: 'RC_SEND_ONLY',
    hex:
      '4500003c6c3a40004011b322c0a84d02c0a84d01efd412b7002800000400ffff0000001180d591b1' +
      '00005557ebdf75f0000005b4000000646ae3a4f7',
  },
  {
    name: 'v4 ACK',
    opcode: 'RC_ACKNOWLEDGE',
    hex:
      '45000030eb6f4000401133f9c0a84d01c0a84d02efd412b7001c00001100ffff0000001100d591b1' +
      '1f00000181a111ad',
  },
  {
    name: 'v4 READ request',
    opcode: 'RC_READ_REQUEST',
    hex:
      '4500003ceb704000401133ecc0a84d01c0a84d02efd412b7002800000c00ffff0000001180d526da' +
      '00005557ebdf75f0000005b40000006444a5c208',
  },
  {
    name: 'v4 READ response only, 100 bytes',
    opcode: 'RC_READ_RESPONSE_ONLY',
    hex:
      '450000946c4340004011b2c1c0a84d02c0a84d01efd412b7008000001000ffff0000001100d526da' +
      '1f00000172646d612d70696e672d303a204142434445464748494a4b4c4d4e4f5051525354555657' +
      '58595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f707172737475767778797a4142434445' +
      '464748494a4b4c4d4e4f505152535455565758595a5b5c00247b2838',
  },
  {
    name: 'v4 WRITE only, 21 bytes and 3 of padding',
    opcode: 'RC_WRITE_ONLY',
    hex:
      '45000054baf9400040116b8b0a0900010a090002e34112b7004000000a30ffff0000abcd80000102' +
      '0000000000002000000000880000001568656c6c6f2d66726f6d2d75736572737061636500000000' +
      '317e7f53',
  },
  {
    name: 'v4 READ response only, 0 bytes',
    opcode: 'RC_READ_RESPONSE_ONLY',
    hex:
      '45000030c8ed400040115dbb0a0900010a090002e34112b7001c00001000ffff0000abcd00faa0e4' +
      '1f0000017c60d958',
  },
  {
    name: 'v4 FETCH_ADD',
    opcode: 'RC_FETCH_ADD',
    hex:
      '4500004879ea40004011a566c0a84d02c0a84d01c24012b7003400001400ffff0000001880e92794' +
      '0000561ceb9bb00000000edc0000000000000001000000000000000073001294',
  },
  {
    name: 'v4 atomic ACK',
    opcode: 'RC_ATOMIC_ACKNOWLEDGE',
    hex:
      '45000038f5804000401129e0c0a84d01c0a84d02c24012b7002400001200ffff0000001800e92794' +
      '1f000001b25d9808888f4c0f4a913165',
  },
  {
    name: 'v4 NAK PSN sequence',
    opcode: 'RC_ACKNOWLEDGE',
    hex:
      '45000030bafc400040116bac0a0900010a090002e34112b7001c00001100ffff0000abcd00d87290' +
      '600000024a44830c',
  },
  {
    name: 'v4 RNR NAK',
    opcode: 'RC_ACKNOWLEDGE',
    hex:
      '45000030bb5b400040116b4d0a0900010a090002e34112b7001c00001100ffff0000abcd00d87292' +
      '20000004a66c17b8',
  },
  {
    name: 'v4 NAK remote access',
    opcode: 'RC_ACKNOWLEDGE',
    hex:
      '45000030c6004000401160a80a0900010a090002e34112b7001c00001100ffff0000abcd000860fa' +
      '6200000030ad4453',
  },
  {
    name: 'v4 SEND only from a UDP socket, identification 0',
    opcode: 'RC_SEND_ONLY',
    hex:
      '4500003c000040004011269d0a0900020a09000112b712b70028144e0400ffff0000001180d8728e' +
      '00000000000010000000007700000040655d5e09',
  },
  {
    name: 'v4 UD SEND with immediate, 100 bytes of zeros',
    opcode: 'UD_SEND_ONLY_WITH_IMM',
    hex:
      '4500009c70dc40004011ae20c0a84d02c0a84d01d07812b7008800006500ffff0000001300000000' +
      '012345670000001300000013' +
      '00'.repeat(100) +
      'c4b54840',
  },
  {
    name: 'v6 SEND only',
    opcode: 'RC_SEND_ONLY',
    hex:
      '6000000000281140fd770000000000000000000000000002fd770000000000000000000000000001' +
      'cb7c12b7002800000400ffff0000001280cfa8510000560485f1c6c0000009da00000064bd104bf1',
  },
  {
    name: 'v6 ACK',
    opcode: 'RC_ACKNOWLEDGE',
    hex:
      '60000000001c1140fd770000000000000000000000000001fd770000000000000000000000000002' +
      'cb7c12b7001c00001100ffff0000001200cfa8511f0000013c4e9695',
  },
  {
    name: 'v6 WRITE only, 21 bytes and 3 of padding',
    opcode: 'RC_WRITE_ONLY',
    hex:
      '6000000000401140fd990000000000000000000000000001fd990000000000000000000000000002' +
      'e34112b7004000000a30ffff0000abcd800001020000000000002000000000880000001568656c6c' +
      '6f2d66726f6d2d75736572737061636500000000a725601e',
  },
  {
    name: 'v6 SEND only from a UDP socket: flow label and UDP checksum set',
    opcode: 'RC_SEND_ONLY',
    hex:
      '6002147500281140fd990000000000000000000000000002fd990000000000000000000000000001' +
      '12b712b70028fb6f0400ffff00000012807022820000000000001000000000770000004075cfd517',
  },
  {
    name: 'v4 CM REQ on QP1',
    opcode: 'UD_SEND_ONLY',
    hex:
      '450001346c3740004011b22dc0a84d02c0a84d01d87212b7012000006400ffff0000000180000000' +
      '8001000000000001010702030000000000000002234ff785001000000000000085f74f2300000000' +
      '0000000001061c06505400fffe00000b00000000000000000000110100000001000000a0d526daa7' +
      'ffff37f0ffffffff00000000000000000000ffffc0a84d0200000000000000000000ffffc0a84d01' +
      '3afda000004000980000000000000000000000000000000000000000000000000000000000000000' +
      '0000000000000000000000000040a1ac000000000000000000000000c0a84d020000000000000000' +
      '00000000c0a84d010000000000000000000000000000000000000000000000000000000000000000' +
      '00000000000000000000000000000000000000000000000059b06963',
  },
];

export function bytesOf(hex: string): Uint8Array {
  return Uint8Array.from(Buffer.from(hex, 'hex'));
}

export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Message sequence number of the AETH at an offset. */
export function aethMsn(view: DataView, offset: number): number {
  return view.getUint32(offset) & 0xffffff;
}
