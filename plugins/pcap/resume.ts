/** Where a capture goes on that is there already. */
import { type Block, CaptureReader } from './capture-reader.js';
import { BlockType, goesOn } from './pcapng.js';

export interface Resume {
  /** Interfaces of the file's last section: the next one has this number. */
  readonly interfaces: number;
  /** Bytes of whole blocks: a writer that was killed may have left a part of one behind them. */
  readonly endBytes: number;
}

/**
 * Reads a file through, to append to it.
 * @param sizeBytes of the file, which is not empty
 * @param mostPartBytes of a block that is there in part; more than that is no end of a capture
 * @throws Error for a file of another kind, or one that is damaged: nothing is cut from it
 */
export function resumeOf(path: string, sizeBytes: number, mostPartBytes: number): Resume {
  const reader = new CaptureReader(path);
  try {
    let interfaces: number | undefined;
    for (let block = reader.next(); block !== undefined; block = reader.next()) {
      interfaces = interfacesAfter(block, interfaces);
      if (interfaces === undefined) throw refusal(path, 'it is no pcapng file that can go on');
    }
    const endBytes = reader.offset;
    if (interfaces === undefined) throw refusal(path, 'it is no pcapng file');
    if (sizeBytes - endBytes > mostPartBytes) {
      throw refusal(path, `it is damaged ${endBytes} bytes from its beginning`);
    }
    return { interfaces, endBytes };
  } finally {
    reader.close();
  }
}

/** @returns undefined for what stands in no section of the kind that is written here */
function interfacesAfter({ type, bytes }: Block, before: number | undefined): number | undefined {
  if (type === BlockType.SECTION_HEADER) return goesOn(bytes) ? 0 : undefined;
  if (before === undefined) return undefined;
  return type === BlockType.INTERFACE_DESCRIPTION ? before + 1 : before;
}

function refusal(path: string, why: string): Error {
  return new Error(`${path} is there and cannot be appended to: ${why}; move it away`);
}
