import type { SessionStore } from '../../src/index.js'
import { checkSessionLogs } from '../../src/testing/check-session-log.js'

/**
 * The reference model's problems with the logs of a store, including sub-agents, one sentence each.
 * Unreadable logs are skipped, because continuing such a session reports an error.
 */
export async function findUnlawful(store: SessionStore): Promise<string[]> {
  const found: string[] = []
  for await (const { session, violation } of checkSessionLogs(store)) {
    if (violation && violation.seq !== null)
      found.push(
        `log of ${session}, record ${violation.seq} breaks '${violation.rule}': ${violation.message}`,
      )
  }
  return found
}
