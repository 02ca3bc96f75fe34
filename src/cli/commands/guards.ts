import type { PresetName } from '../../../machines/agent/config.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { Message } from '../../../machines/agent/messages.js'
import type { ModelOutput } from '../../../machines/agent/model-response.js'
import { addUsage, type Usage } from '../../../machines/agent/usage.js'
import { findPreset, presets } from '../../core/config/presets.js'
import { formatCount, formatMoney, stripControls } from '../../core/format/format-words.js'
import { openRecord } from '../../core/sessions/log/log-record.js'
import { readSessionAt, toSessionSnapshot } from '../../core/sessions/replay-session.js'
import type { SessionStore } from '../../core/sessions/store/store.js'
import {
  compareGuards,
  type GuardComparison,
  type GuardReplay,
  type GuardStop,
  replayGuards,
} from '../../testing/replay-guards.js'
import { badUsageError, defineCommand } from '../command.js'
import { exitCodes } from '../exit-codes.js'
import { loadConfig } from '../load.js'
import { excludeBoth, storeOption } from '../options.js'
import { withSession } from '../session-store.js'

export const guardsCommand = defineCommand({
  name: 'guards',
  about: 'Shows which guards would act in a session.',
  positional: 'ID',
  options: {
    config: { short: 'c', value: 'FILE', about: 'a JSON configuration with the guardrails to try' },
    preset: {
      value: 'NAMES',
      about: 'show where each preset would stop the session, and the savings: aar,openhuman',
    },
    json: { about: 'print one line of JSON: the findings, and the savings' },
    ...storeOption,
  },
  notes: [
    "The model's answers stay as recorded, even after a nudge. The command runs no tools and writes nothing.",
    'With --preset, the step limit also applies. The savings are the tokens and costs of the responses after the stop.',
    'Exit codes: 0 no guard stops the session, 2 bad usage or configuration, 3 a guard stops it.',
    'Examples:\n  statewright guards work\n  statewright guards work --config stricter.json\n' +
      '  statewright guards work --preset aar,openhuman,strands',
  ],
  execute: async (parsed, io) => {
    const { json, config } = parsed.values
    const names = parsePresets(parsed.values.preset)
    excludeBoth(parsed.values, 'preset', 'config', 'Compare presets, or try one file')
    const { preset, guardrails } = await loadConfig(config, io.cwd)
    const { messages, tools, usage } = await withSession(parsed, io, async (store, { id }) => {
      const { messages: all, snapshot } = toSessionSnapshot(await readSessionAt(store, id))
      const context = snapshot?.context as AgentContext | undefined
      const spent = names ? await listResponseUsage(store, id, all) : []
      return { messages: all, tools: context?.tools ?? {}, usage: spent }
    })
    if (names) {
      const configs = Object.fromEntries(names.map((name) => [name, { preset: name }]))
      const comparisons = compareGuards(messages, configs, { tools, usage })
      io.stdout.write(
        json ? `${JSON.stringify(comparisons)}\n` : formatComparisons(comparisons, usage.length),
      )
      return comparisons.some(({ stops }) => stops.length > 0) ? exitCodes.stopped : exitCodes.completed
    }
    const replay = replayGuards(messages, { preset, guardrails }, tools)
    io.stdout.write(json ? `${JSON.stringify(replay)}\n` : formatReplay(replay))
    return replay.halt === null ? exitCodes.completed : exitCodes.stopped
  },
})

function parsePresets(text: string | undefined): PresetName[] | undefined {
  if (text === undefined) return undefined
  const names = text.split(',').flatMap((name) => name.trim() || [])
  if (names.length === 0)
    throw badUsageError(`--preset needs names: ${Object.keys(presets).join(', ')}.`, '--preset')
  for (const name of names) findPreset(name, '--preset')
  return [...new Set(names)] as PresetName[]
}

function formatComparisons(comparisons: readonly GuardComparison[], responses: number): string {
  const lines = comparisons.flatMap(({ name, stops, saved, replay }) => {
    const { refused } = replay.calls
    const refusals = refused === 0 ? '' : `; ${formatCount(refused, 'call')} refused`
    if (stops.length === 0) return [`${name}: would not have stopped it${refusals}.`]
    const spent =
      saved.tokens === null
        ? 'tokens unknown'
        : `${formatCount(saved.tokens)} tokens, ${formatMoney(saved.cost, 'cost unknown')}`
    const savings = `${formatCount(saved.responses, 'response')} and ${formatCount(saved.calls, 'call')} (${spent})`
    const head = `${name}: would have saved ${savings}${refusals}.`
    return [head, ...stops.map((stop) => `  ${formatStop(stop)}`)]
  })
  return [`${formatCount(responses, 'response')} in the session.`, ...lines, ''].join('\n')
}

function formatStop({ step, when, by, rule, message }: GuardStop): string {
  const place = when === 'before' ? `before the calls of response ${step + 1}` : `after response ${step + 1}`
  return stripControls(`stops ${place}, ${formatRule(by, rule)}: ${message}`)
}

const formatRule = (guard: string, rule: string | undefined): string =>
  rule === undefined ? guard : `${guard} (${rule})`

function formatReplay({ findings, steps, calls: { executed, refused }, halt }: GuardReplay): string {
  const end =
    halt === null
      ? 'no guard would have stopped it'
      : `a guard would have stopped it after response ${halt.step + 1}`
  const counts = `${formatCount(steps, 'response')} with calls: ${formatCount(executed, 'call')} executed, ${refused} refused`
  const lines = findings.map(({ step, action, guard, rule, message }) =>
    stripControls(`response ${step + 1}  ${action}  ${formatRule(guard, rule)}: ${message}`),
  )
  return [...lines, `${counts}; ${end}.`, ''].join('\n')
}

type Response = ModelOutput['response']
type AssistantMessage = Extract<Message, { role: 'assistant' }>

/**
 * The usage of each assistant message according to the log, or null for a message without a response. A response
 * without a message (a part of a continued answer) counts toward the next message.
 */
async function listResponseUsage(
  store: SessionStore,
  sessionId: string,
  messages: readonly Message[],
): Promise<(Usage | null)[]> {
  const responses: Response[] = []
  let seq = 0
  for (const record of await store.read(sessionId)) {
    const entry = openRecord(record, seq, sessionId)
    seq = record.seq
    if (entry.type !== 'event' || !/^xstate\.done\.actor\.(model|conclusion)$/.test(entry.event.type))
      continue
    responses.push((entry.event as unknown as { output: ModelOutput }).output.response)
  }
  let next = 0
  return messages
    .filter((message): message is AssistantMessage => message.role === 'assistant')
    .map((message) => {
      const found = responses.findIndex((response, i) => i >= next && isResponseOf(response, message))
      if (found < 0) return null
      const usage = responses.slice(next, found + 1).map((response) => response.usage)
      next = found + 1
      return usage.reduce(addUsage)
    })
}

function isResponseOf(
  { toolCalls, text }: Response,
  { tool_calls: calls = [], content }: AssistantMessage,
): boolean {
  if (calls.length > 0)
    return calls.map(({ id }) => id).join('\n') === toolCalls.map(({ id }) => id).join('\n')
  return toolCalls.length === 0 && typeof content === 'string' && content.endsWith(text)
}
