import type { AgentConfig, AgentConfigInput } from '../../../machines/agent/config.js'
import { loadOnce } from '../base/lazy-load.js'

const loadSettings = loadOnce(() => import('./unreachable-settings.js'))

/**
 * Warns the process, a moment later, of settings that never take effect under the others. What knows them is loaded for
 * those alone who have written such a setting.
 */
export function warnOfUnreachable(given: AgentConfigInput, config: AgentConfig): void {
  const { limits, guardrails, completion, toolCalls, retry, streamIdleMs, contentIdleMs } = given
  const isWritten = [guardrails, completion, toolCalls, retry, streamIdleMs, contentIdleMs]
  if ([...isWritten, limits?.outputTokens].every((one) => one === undefined)) return
  void loadSettings().then(
    ({ warnOfUnreachableSettings }) => warnOfUnreachableSettings(given, config),
    // A warning is all that is lost.
    () => undefined,
  )
}
