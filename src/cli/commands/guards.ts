import type { AgentContext } from '../../../machines/agent/context.js'
import type { PresetName } from '../../../machines/agent/config.js'
import type { Message } from '../../../machines/agent/messages.js'
import type { ModelOutput } from '../../../machines/agent/model-response.js'
import { addUsage, type Usage } from '../../../machines/agent/usage.js'
import { findPreset, presets } from '../../core/config/presets.js'
import { formatCount, formatMoney, stripControls } from '../../core/format/format-words.js'
import { replaySession } from '../../core/sessions/replay-session.js'
import {
  compareGuards,
  type GuardComparison,
  type GuardSavings,
  type GuardStop,
  type GuardReplay,
  type ReplayedFinding,
  replayGuards,
} from '../../testing/replay-guards.js'
import { openRecord } from '../../core/sessions/log/log-record.js'
import type { SessionStore } from '../../core/sessions/store/store.js'
import { badUsageError } from '../cli-error.js'
import type { CliIO, Command } from '../command.js'
import { exitCodes } from '../exit-codes.js'
import { findSession } from '../find-session.js'
import { loadConfig } from '../load-config.js'
import { withSessionStore } from '../open-session-store.js'
import { parseOptions } from '../parse-options.js'
import { parseSessionId, sessionOptionSpecs } from './sessions/session-options.js'

const options = {
  config: { short: 'c', value: 'FILE', about: 'a JSON configuration with the guardrails to try' },
  preset: {
    value: 'NAMES',
    about:
      'where each of these presets would have stopped the session, and what it would have saved: aar,openhuman',
  },
  json: { about: 'print one line of JSON: the findings, and what they would have saved' },
  ...sessionOptionSpecs,
}

export const guardsCommand: Command = {
  name: 'guards',
  about: 'Shows what the guards would have found in a session, with the default or another configuration.',
  positional: 'SESSION',
  options,
  notes: [
    "The model's answers stay as recorded, even after a nudge. Nothing runs, nothing is written.",
    'With --preset the step cap counts, too. Tokens and money are those of the responses that would not have been asked for.',
    'Exit codes: 0 no guard halts the session, 2 bad usage or configuration, 3 a guard halts it.',
    'Examples:\n  statewright guards work\n  statewright guards work --config stricter.json\n' +
      '  statewright guards work --preset aar,openhuman,strands',
  ],
  execute: async (args, io) => {
    const { positionals, has, text } = parseOptions(args, options)
    const id = parseSessionId(positionals)
    const names = parsePresets(text('preset'))
    if (names && has('config')) {
      throw badUsageError(
        '--preset and --config exclude each other: compare presets, or try one file.',
        '--preset',
      )
    }
    const { preset, guardrails } = await loadConfig(text('config'), io.cwd)
    const { messages, tools, usage } = await withSessionStore(text('store'), io, async (store) => {
      await findSession(store, id)
      const { messages: all, snapshot } = await replaySession(store, id)
      const context = snapshot?.context as AgentContext | undefined
      const spent = names ? await listResponseUsage(store, id, all) : []
      return { messages: all, tools: context?.tools ?? {}, usage: spent }
    })
    if (names) {
      const configs = Object.fromEntries(names.map((name) => [name, { preset: name }]))
      const compared = compareGuards(messages, configs, { tools, usage })
      if (has('json')) io.stdout.write(`${JSON.stringify(compared)}\n`)
      else writeComparison(compared, usage.length, io)
      return compared.some(({ stops }) => stops.length > 0) ? exitCodes.stopped : exitCodes.completed
    }
    const said = replayGuards(messages, { preset, guardrails }, tools)
    if (has('json')) io.stdout.write(`${JSON.stringify(said)}\n`)
    else writeReplay(said, io)
    return said.halt === null ? exitCodes.completed : exitCodes.stopped
  },
}

/** The presets of a list with commas, each once. */
function parsePresets(given: string | undefined): PresetName[] | undefined {
  if (given === undefined) return undefined
  const names = given
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean)
  if (names.length === 0) {
    throw badUsageError(`--preset needs names: ${Object.keys(presets).join(', ')}.`, '--preset')
  }
  for (const name of names) findPreset(name, '--preset')
  return [...new Set(names)] as PresetName[]
}

function writeComparison(compared: readonly GuardComparison[], responses: number, { stdout }: CliIO): void {
  stdout.write(`${countOf(responses, 'response')} in the session.\n`)
  for (const { name, stops, saved, replay } of compared) {
    const { refused } = replay.calls
    const refusals = refused === 0 ? '' : `; ${countOf(refused, 'call')} refused`
    if (stops.length === 0) {
      stdout.write(`${name}: would not have stopped it${refusals}.\n`)
      continue
    }
    stdout.write(`${name}: would have saved ${formatSavings(saved)}${refusals}.\n`)
    for (const stop of stops) stdout.write(`  ${formatStop(stop)}\n`)
  }
}

function formatSavings({ responses, calls, tokens, cost }: GuardSavings): string {
  const spent =
    tokens === null ? 'tokens unknown' : `${formatCount(tokens)} tokens, ${formatMoney(cost, 'cost unknown')}`
  return `${countOf(responses, 'response')} and ${countOf(calls, 'call')} (${spent})`
}

function formatStop({ step, when, by, rule, message }: GuardStop): string {
  const which = rule === undefined ? by : `${by} (${rule})`
  const place = when === 'before' ? `before the calls of response ${step + 1}` : `after response ${step + 1}`
  return stripControls(`stops ${place}, ${which}: ${message}`)
}

function countOf(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`
}

function writeReplay({ findings, steps, calls, halt }: GuardReplay, { stdout }: CliIO): void {
  for (const finding of findings) stdout.write(`${formatFinding(finding)}\n`)
  const { executed, refused } = calls
  const end =
    halt === null
      ? 'no guard would have halted it'
      : `a guard would have halted it after response ${halt.step + 1}`
  stdout.write(
    `${steps} ${steps === 1 ? 'response' : 'responses'} with calls: ${executed} ${executed === 1 ? 'call' : 'calls'} ` +
      `executed, ${refused} refused; ${end}.\n`,
  )
}

function formatFinding({ step, action, guard, rule, message }: ReplayedFinding): string {
  const which = rule === undefined ? guard : `${guard} (${rule})`
  return stripControls(`response ${step + 1}  ${action}  ${which}: ${message}`)
}

type Response = ModelOutput['response']
type AssistantMessage = Extract<Message, { role: 'assistant' }>

/**
 * The usage of each assistant message of a session, from the responses in its log; null for a message that came from
 * elsewhere. A response without a message of its own, as a part of an answer that was continued, counts for the next one.
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
