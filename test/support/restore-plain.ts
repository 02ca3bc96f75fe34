import { type AnyMachineSnapshot, createActor, fromPromise, SimulatedClock } from 'xstate'
import { z } from 'zod'
import type { AgentContext } from '../../machines/agent/context.js'
import type { UserGuardsOutput } from '../../guards/user-state.js'
import type { CompactionOutput } from '../../machines/agent/fit.js'
import type { RetrievedSnippet } from '../../machines/agent/messages.js'
import type { CallScreening, InputScreening, OutputScreening } from '../../machines/agent/screening.js'
import { early, createConsultation, createFitOutput } from '../../src/testing/agent/actor-outcomes.js'
import { listAnswerableCalls } from '../../machines/agent/questions.js'
import { isInDoubt } from '../../machines/agent/call-state.js'
import type { ModelResponse } from '../../machines/agent/model-response.js'
import { createAgent, defineTool, type ModelProvider, type Tool } from '../../src/index.js'
import { findHistoryProblem } from './history.js'
import { settled } from './manual-model.js'

/** A machine state as an app would store it. */
export function toStored({ value, status, context }: AnyMachineSnapshot): { context: AgentContext } {
  return JSON.parse(JSON.stringify({ value, status, context, children: {}, historyValue: {} })) as {
    context: AgentContext
  }
}

/**
 * Restores a snapshot with plain XState and acts for a patient person: answers the run's questions, resumes
 * it, waits. Returns the problem, or null when the run ends.
 */
export async function restoreProblem(snapshot: { context: AgentContext }): Promise<string | null> {
  const { context } = snapshot
  const inDoubt = new Set(context.calls.filter((call) => isInDoubt(context, call)).map(({ id }) => id))
  const clock = new SimulatedClock()
  clock.set(early)
  const repeated: string[] = []
  const agent = createAgent({
    ...context.config,
    clock,
    model: answering(context.features.structuredOutput ? '{"done":true}' : 'Done.'),
    tools: toolsOf((callId) => {
      if (inDoubt.has(callId)) repeated.push(callId)
    }),
    ...(context.features.structuredOutput && { output: z.object({ done: z.boolean() }) }),
  })
  const machine = agent.machine.provide({
    actors: {
      screenInput: fromPromise<InputScreening[]>(async () => []),
      screenCalls: fromPromise<CallScreening[]>(async () => []),
      screenResults: fromPromise<CallScreening[]>(async () => []),
      screenOutput: fromPromise<OutputScreening>(async () => ({
        action: 'allow',
        message: null,
        content: 'Done.',
        findings: [],
      })),
      retrieve: fromPromise<RetrievedSnippet[]>(async () => []),
      fitContext: fromPromise<CompactionOutput>(async () => createFitOutput(null)),
      consultGuards: fromPromise<UserGuardsOutput, { on: 'calls' | 'results' }>(async () =>
        createConsultation(),
      ),
    },
  })
  const errors: unknown[] = []
  const actor = createActor(machine, { snapshot: snapshot as never })
  actor.subscribe({ error: (error) => errors.push(error) })
  actor.start()
  let replies = 0
  for (let round = 0; round < 40 && actor.getSnapshot().status === 'active'; round += 1) {
    await settled()
    const { context: now, value } = actor.getSnapshot()
    if (now.state === 'PAUSED') actor.send({ type: 'RESUME' })
    if (now.state === 'WAITING_FOR_INPUT') {
      for (const { callId } of listAnswerableCalls(now)) {
        // Work that may have happened is not repeated.
        actor.send({ type: 'REJECT', callId, why: 'No.' })
        actor.send({ type: 'TOOL_OUTPUT', callId, content: 'Picked.' })
      }
      const asks = JSON.stringify(value).includes('message')
      if (asks)
        actor.send(replies++ === 0 ? { type: 'REPLY', messages: [{ content: 'On.' }] } : { type: 'CANCEL' })
    }
    if (now.backOffUntil > clock.now()) clock.increment(now.backOffUntil - clock.now())
  }
  const { status, value, context: end } = actor.getSnapshot()
  actor.stop()
  if (errors.length > 0) return `it broke: ${String(errors[0])}`
  if (status !== 'done') return `it hangs in ${JSON.stringify(value)}`
  if (repeated.length > 0) return `it has carried out ${repeated.join()} again`
  return findHistoryProblem(end.messages)
}

function answering(text: string): ModelProvider {
  const response: ModelResponse = {
    text,
    reasoning: '',
    refusal: null,
    toolCalls: [],
    finishReason: 'stop',
    complete: true,
    usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2, cachedInputTokens: 0, reasoningTokens: 0 },
    model: 'm',
  }
  return { provider: 'test', model: 'm', request: async () => response }
}

/** The tools of the alphabet. */
function toolsOf(executed: (callId: string) => void): Tool[] {
  const input = z.looseObject({})
  const execute = (_: unknown, { callId }: { callId: string }): string => {
    executed(callId)
    return 'ok'
  }
  return [
    defineTool({ name: 'research', description: 'Stands for a sub-agent.', input, execute }),
    defineTool({ name: 'read', description: 'Reads.', input, execute }),
    defineTool({ name: 'look', description: 'Looks.', input, execute, readOnly: true, idempotent: true }),
    defineTool({ name: 'transfer', description: 'Asks first.', input, execute, needsApproval: true }),
    defineTool({
      name: 'load_skill',
      description: 'Loads.',
      input,
      execute,
      readOnly: true,
      idempotent: true,
    }),
    defineTool({ name: 'pick', description: 'Runs at the client.', input, client: true }),
  ] as Tool[]
}
