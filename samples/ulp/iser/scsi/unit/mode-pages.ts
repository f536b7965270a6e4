/** Mode pages: current, changeable and default values (SPC-4 7.5). */

/** Page control of MODE SENSE (SPC-4 table 162). */
export type PageControl = 'current' | 'changeable' | 'default';

interface Page {
  readonly code: number;
  /** Bits that MODE SELECT may change. */
  readonly changeable: Uint8Array;
  readonly defaults: Uint8Array;
  current: Uint8Array;
}

const bytes = (hex: string): Uint8Array =>
  Uint8Array.from(Buffer.from(hex.replaceAll(' ', ''), 'hex'));

/** Each page with its header; bits that are 0 in the second row cannot be changed. */
const PAGES: readonly {
  readonly code: number;
  readonly defaults: string;
  readonly changeable: string;
}[] = [
  // Caching (SBC-3 6.5.6): WCE, byte 2 bit 2.
  {
    code: 0x08,
    defaults: '08 12 04 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00',
    changeable: '08 12 04 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00',
  },
  // Control (SPC-4 7.5.8): TST 001b, a task set for each nexus, byte 2 bits 5 to 7; D_SENSE byte 2
  // bit 2; unrestricted reordering byte 3; SWP byte 4 bit 3; TAS byte 5 bit 6, as Linux's target
  // has it; busy timeout unlimited.
  {
    code: 0x0a,
    defaults: '0a 0a 20 10 00 40 00 00 ff ff 00 00',
    changeable: '0a 0a 04 00 08 00 00 00 00 00 00 00',
  },
];

const D_SENSE = { code: 0x0a, byte: 2, mask: 0x04 } as const;
const SWP = { code: 0x0a, byte: 4, mask: 0x08 } as const;
const WCE = { code: 0x08, byte: 2, mask: 0x04 } as const;

export class ModePages {
  private readonly pages: readonly Page[] = PAGES.map(({ code, defaults, changeable }) => ({
    code,
    defaults: bytes(defaults),
    changeable: bytes(changeable),
    current: bytes(defaults),
  }));

  get codes(): readonly number[] {
    return this.pages.map(({ code }) => code);
  }

  /** The page with its header, or undefined if it does not exist. */
  page(code: number, control: PageControl): Uint8Array | undefined {
    const page = this.find(code);
    if (page === undefined) return undefined;
    return { current: page.current, changeable: page.changeable, default: page.defaults }[control];
  }

  /** The first byte of a MODE SELECT page that changes a fixed bit, or undefined. */
  refused(code: number, wanted: Uint8Array): number | undefined {
    const { current, changeable } = this.find(code)!;
    // Byte 0 has PS, which is reserved in MODE SELECT.
    for (let at = 1; at < current.length; at++) {
      const mask = at === 1 ? 0 : changeable[at]!;
      if (((wanted[at]! ^ current[at]!) & ~mask & 0xff) !== 0) return at;
    }
    return undefined;
  }

  /** @returns true if anything changed */
  set(code: number, wanted: Uint8Array): boolean {
    const page = this.find(code)!;
    const isChange = page.current.some((byte, at) => at > 0 && byte !== wanted[at]);
    if (isChange) page.current = Uint8Array.from([page.code, ...wanted.subarray(1)]);
    return isChange;
  }

  reset(): void {
    for (const page of this.pages) page.current = page.defaults;
  }

  /** True if sense data use the descriptor format. */
  get hasDescriptorSense(): boolean {
    return this.bit(D_SENSE);
  }

  get isWriteProtected(): boolean {
    return this.bit(SWP);
  }

  /** True if writes may be answered before they are durable. */
  get hasWriteCache(): boolean {
    return this.bit(WCE);
  }

  private bit({ code, byte, mask }: { code: number; byte: number; mask: number }): boolean {
    return (this.find(code)!.current[byte]! & mask) !== 0;
  }

  private find(code: number): Page | undefined {
    return this.pages.find((page) => page.code === code);
  }
}
