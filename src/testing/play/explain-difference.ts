import type { Features } from '../../../machines/agent/context.js'
import type { FoldedSession } from '../../core/sessions/fold-session.js'
import { listLeafChanges } from './record-agent.js'
import { formatValue } from './difference-text.js'

const featureWords: Record<keyof Features, string> = {
  inputShields: 'shields that look at what the user says',
  outputShields: 'shields that look at answers',
  callShields: 'shields that look at calls',
  resultShields: 'shields that look at results',
  retrieval: 'a memory',
  fitting: 'a context window to fit',
  userGuards: 'guards of its own',
  structuredOutput: 'an output schema',
}

/** Lists the changes of the agent that may explain another path, one a line. */
export function explainDifference({ run: one }: FoldedSession, { run: other }: FoldedSession): string[] {
  if (!one || !other) return []
  const [then, now] = [one.context, other.context]
  const settings = listLeafChanges(then.config, now.config).map(
    ({ path, before, after }) => `${path} was ${formatValue(before)}, and is ${formatValue(after)}`,
  )
  const features = listLeafChanges(then.features, now.features).map(({ path, after }) => {
    const words = featureWords[path as keyof Features] ?? path
    return after === true ? `it has ${words} now` : `it has ${words} no more`
  })
  const tools = Object.keys(then.tools)
    .filter((name) => now.tools[name] !== undefined)
    .flatMap((name) =>
      listLeafChanges(then.tools[name], now.tools[name]).map(
        ({ path, after }) => `tool '${name}' ${after === true ? 'is' : 'is not'} ${path} now`,
      ),
    )
  return [...settings, ...features, ...tools]
}
