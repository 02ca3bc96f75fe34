import type { SessionStore } from '../../src/index.js'
import { checkSessionLogs } from '../../src/testing/check-session-log.js'

/**
 * What the reference model finds wrong with the logs of a store, a sentence for each; those of sub-agents are among them.
 * A log that cannot be read is not judged: whoever continues its session is told.
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
