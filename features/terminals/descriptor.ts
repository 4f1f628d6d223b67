/** The descriptor of a terminal where it is a file. */
import type { IPty } from 'node-pty'

/** What the library has there. It closes the descriptor with its stream, and tells of it in a later pass of the event loop. */
interface PtyFile {
  readonly fd?: unknown
  readonly _socket?: { readonly destroyed: boolean }
}

/** Whether the terminal is a file: not on Windows. */
export const isFile = (pty: IPty & PtyFile): boolean => process.platform !== 'win32' && typeof pty.fd === 'number'

/** Undefined once it is closed: from then on its number may be that of another file. Asked anew for every use. */
export function descriptorOf(pty: IPty & PtyFile): number | undefined {
  return isFile(pty) && pty._socket?.destroyed === false ? (pty.fd as number) : undefined
}
