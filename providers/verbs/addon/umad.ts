/** The native part of management datagrams: files of /dev/infiniband/umadN, an agent in each. */

/** Events of a file: `onEvent(event, token, errno)`, from the event loop, never inside a call. */
export const UmadEvent = {
  /** Something can be read, or the device is gone. */
  READABLE: 0,
  /** The packet with that token is the kernel's now, or errno says why not. */
  WRITTEN: 1,
  /** Behind `umadClose`: all has been given back. The last event of a file. */
  CLOSED: 2,
} as const;

export type UmadEventHandler = (event: number, token: number, errno: number) => void;

/** A file is a number. Makers return one, or -errno; the others errno or 0. */
export interface UmadNative {
  umadOpen(path: string, onEvent: UmadEventHandler): number;
  /**
   * Once per file. Class 0 for an agent without methods.
   * @param methods 16 bytes, a bit for each method
   */
  umadRegister(
    file: number,
    managementClass: number,
    classVersion: number,
    oui: number,
    rmppVersion: number,
    methods: Uint8Array,
  ): number;
  /** Takes a copy; WRITTEN tells the rest. */
  umadWrite(file: number, token: number, packet: Uint8Array): number;
  /** Length, or -errno: EAGAIN, ENOSPC (header and first datagram are there), EIO (gone). */
  umadRead(file: number, into: Uint8Array): number;
  umadClose(file: number): number;
}
