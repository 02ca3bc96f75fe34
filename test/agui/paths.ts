import { agentMachine } from '../../machines/agent.machine.js'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { AgentContext } from '../../machines/agent/context.js'
import { standingOf } from '../../machines/agent/result-of.js'
import { unclearedInput, withheldResult } from '../../machines/agent/screening.js'
import { shownMessages } from '../../machines/agent/unscreened.js'
import { type AGUIMessage, toAGUIMessages } from '../../src/agui/index.js'
import { Fold, type Standing } from '../../src/agui/fold.js'
import { agentSpace, coverPaths, replay, type ReplayPath } from '../../src/testing/index.js'
import { AgentHarness } from '../support/agent-harness/agent-harness.js'
import { AGUIPage, comparable } from './page.js'

/** The paths over every pair of transitions that can follow each other; from these inputs, or from all. */
export function generatedPaths(...only: string[]): GeneratedPath[] {
  const space = agentSpace(only.length > 0 ? { only } : {})
  return coverPaths(agentMachine, { ...space, coverage: 'transition-pairs' }).paths
}

type GeneratedPath = ReplayPath & { input: string; name: string }

/** The live agent goes a path, and a page of AG-UI follows it, from rest to rest. Returns what the page shows at last. */
export async function follow(
  path: ReplayPath,
): Promise<{ page: AGUIPage; context: AgentContext; ends: string[]; rests: boolean }> {
  const heard: AgentEvent[] = []
  const harness = new AgentHarness(path.steps, (event) => heard.push(event))
  const context = (): AgentContext => (harness.snapshot() as unknown as { context: AgentContext }).context
  const page = new AGUIPage()
  const ends: string[] = []
  let history: AgentContext['messages'] = []
  const segment = async (): Promise<void> => {
    const fold = new Fold({ threadId: 't', runId: `r${ends.length}`, history })
    const events = [...fold.begin(), ...heard.splice(0).flatMap((event) => fold.hear(event))]
    // A path of the machine may end anywhere; a run of the protocol ends at rests.
    events.push(...fold.end(standingOf(context()) as Standing))
    const last = events.at(-1)
    ends.push(last?.type === 'RUN_FINISHED' ? last.outcome.type : String(last?.type))
    for (const { id, role, internal, data } of shownMessages(context())) {
      if (role === 'user' && !internal && data?.['reason'] !== 'steering') page.say(id, '')
    }
    await page.take(events)
    history = shownMessages(context())
  }
  const followed = {
    start: harness.start,
    perform: harness.perform,
    settled: async () => {
      await harness.settled()
      const { state } = context()
      if (state === 'WAITING_FOR_INPUT' || state === 'PAUSED') await segment()
    },
    snapshot: harness.snapshot,
    stop: async () => {
      if (heard.length > 0) await segment()
      await harness.stop()
    },
  }
  const outcome = await replay(path, followed)
  if (!outcome.ok) throw new Error(JSON.stringify(outcome))
  const { state } = context()
  return { page, context: context(), ends, rests: state !== 'RUNNING' && state !== 'WAITING_FOR_TOOL' }
}

/** The transcript, as the page has to show it; and what it shows, as far as shields have spoken. */
export function bothOf(page: AGUIPage, context: AgentContext): { shown: unknown[]; transcript: unknown[] } {
  const messages = shownMessages(context)
  const isUnseen = ({ content }: { content: unknown }): boolean =>
    content === unclearedInput || content === withheldResult
  const unseen = new Set(messages.filter(isUnseen).map(({ id }) => id))
  const seen = (all: readonly AGUIMessage[]): unknown[] => comparable(all.filter(({ id }) => !unseen.has(id)))
  return {
    shown: seen(page.messages as unknown as AGUIMessage[]),
    transcript: seen(toAGUIMessages(messages)),
  }
}
