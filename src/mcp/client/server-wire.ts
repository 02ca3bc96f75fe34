import type { Transport } from '@modelcontextprotocol/client'

/** What a transport of the SDK notices, told to the connection that uses it. */
export interface WireEvents {
  /** The server is gone, or may not go on. `reason` completes 'The MCP server … '. */
  onLost: (reason: ServerLoss) => void
  /** Something came that was no message. */
  onComplaint: (error: Error) => void
}

export interface ServerLoss {
  /** Completes a sentence that begins with the server: 'has ended', 'sent more than …'. */
  reason: string
  /** Whether a call that this ended may work when it is made again. */
  transient: boolean
}

/** A way to a server: a transport of the SDK, and what the SDK leaves to others. */
export interface ServerWire {
  readonly transport: Transport
  /** Where the server is, for people; without secrets. */
  readonly place: string
  /** Whether arguments travel as headers, too, where a tool's schema says so. */
  readonly hasHeaders: boolean
  /** How long a server may take to say whether it speaks the protocol without a greeting. */
  readonly probeTimeoutMs: number
  /** What the server last said on its own account, as a sentence; '' when it said nothing. */
  getLastOutput(): string
  /** Why it could not be started or reached, as a sentence, where an error needs explaining. */
  explain(error: unknown): string | undefined
  /** Takes leave of the server while it still listens. Never rejects. */
  shutDown(): Promise<void>
  /** Ends it at once, however it behaves. */
  kill(): void
}
