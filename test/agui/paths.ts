import { agentMachine } from '../../machines/agent.machine.js'
import type { AgentContext } from '../../machines/agent/context.js'
import { isWorkState } from '../../machines/agent/run-result.js'
import { toRunResult } from '../../machines/agent/to-result.js'
import { unclearedInput, withheldResult } from '../../machines/agent/screening.js'
import { maskMessages } from '../../machines/agent/mask-uncleared.js'
import { type AGUIMessage, toAGUIMessages } from '../../src/agui/index.js'
import { createAGUIFold } from '../../src/agui/agui-fold.js'
import type { RunStatus } from '../../src/agui/approval-interrupts.js'
import { agentSpace, generatePaths, type ReplayPath } from '../../src/testing/index.js'
import { agentPaths } from '../support/agent-paths.js'
import { followPath } from '../support/follow-path.js'
import { AGUIPage, comparable } from './page.js'

/** The paths over all pairs of consecutive transitions, from these inputs or from all. */
export function generatedPaths(...only: string[]): GeneratedPath[] {
  if (only.length === 0) return agentPaths()
  return generatePaths(agentMachine, { ...agentSpace({ only }), coverage: 'transition-pairs' }).paths
}

type GeneratedPath = ReplayPath & { input: string; name: string }

/** The live agent follows a path, and an AG-UI page follows it from rest to rest. Returns the final messages of the page. */
export async function follow(
  path: ReplayPath,
): Promise<{ page: AGUIPage; context: AgentContext; ends: string[]; rests: boolean }> {
  const page = new AGUIPage()
  const ends: string[] = []
  let history: AgentContext['messages'] = []
  const context = await followPath(path, async (received, stands) => {
    const fold = createAGUIFold({ threadId: 't', runId: `r${ends.length}`, history })
    const events = [...fold.begin(), ...received.flatMap((event) => fold.handleEvent(event))]
    // A path of the machine may end anywhere; a run of the protocol ends at rests.
    events.push(...fold.end(toRunResult(stands) as RunStatus))
    const last = events.at(-1)
    ends.push(last?.type === 'RUN_FINISHED' ? last.outcome.type : String(last?.type))
    history = maskMessages(stands)
    for (const { id, role, internal, data } of history) {
      if (role === 'user' && !internal && data?.['reason'] !== 'steering') page.say(id, '')
    }
    await page.take(events)
  })
  return { page, context, ends, rests: !isWorkState(context.state) }
}

/** The expected and the actual messages of the page, without text that shields have not checked. */
export function bothOf(page: AGUIPage, context: AgentContext): { shown: unknown[]; transcript: unknown[] } {
  const messages = maskMessages(context)
  const isUnseen = ({ content }: { content: unknown }): boolean =>
    content === unclearedInput || content === withheldResult
  const unseen = new Set(messages.filter(isUnseen).map(({ id }) => id))
  const seen = (all: readonly AGUIMessage[]): unknown[] => comparable(all.filter(({ id }) => !unseen.has(id)))
  return {
    shown: seen(page.messages as unknown as AGUIMessage[]),
    transcript: seen(toAGUIMessages(messages)),
  }
}
