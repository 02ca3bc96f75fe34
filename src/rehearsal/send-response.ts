import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock } from '../core/base/clock.js'
import type { PlannedResponse } from './planned-response.js'

/** Milliseconds before the first byte and between two writes. */
export interface Pace {
  delayMs?: number | undefined
  chunkDelayMs?: number | undefined
}

/** Sends a planned response. Resolves when it is sent, or the client has disconnected. */
export async function sendResponse(
  response: ServerResponse,
  { status, headers, writes, ending }: PlannedResponse,
  { delayMs = 0, chunkDelayMs = 0 }: Pace,
  clock: Clock,
): Promise<void> {
  if (ending === 'silence') return
  await waitForClock(response, delayMs, clock)
  if (response.destroyed) return
  response.writeHead(status, headers)
  response.flushHeaders()
  for (const [i, bytes] of writes.entries()) {
    if (i > 0) await waitForClock(response, chunkDelayMs, clock)
    if (response.destroyed) return
    await writeBytes(response, bytes)
  }
  if (ending === 'end') response.end()
  if (ending === 'cut') response.destroy()
}

/** Waits for the clock, or for the connection to close. */
function waitForClock(response: ServerResponse, ms: number, clock: Clock): Promise<void> {
  if (ms <= 0 || response.destroyed) return Promise.resolve()
  return new Promise((resolve) => {
    const wake = (): void => {
      clock.clearTimeout(timer)
      response.off('close', wake)
      resolve()
    }
    const timer = clock.setTimeout(wake, ms)
    response.once('close', wake)
  })
}

/**
 * Waits until the bytes are sent and, for a client in this process, until it could read them: otherwise it would see two
 * writes as one.
 */
async function writeBytes(response: ServerResponse, bytes: Uint8Array): Promise<void> {
  await new Promise<void>((resolve) => {
    response.write(bytes, () => resolve())
  })
  await nextTurn()
}
