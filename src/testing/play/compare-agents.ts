import {
  type DifferenceKind,
  type SessionDifference,
  type RecordedAgent,
  type RecordedTool,
  type CompleteRecordedAgent,
  listLeafChanges,
} from './recording.js'
import { toCanonicalJson } from '../canonical-json.js'
import type { JsonObject } from '../../../machines/agent/json.js'
import { truncate } from '../../../guards/lib/words.js'
import type { CallNeeds } from '../../../machines/agent/model-response.js'
import { describeEventType } from '../../core/chart/state-labels.js'
import { formatToolName, formatArguments } from '../../core/format/format-call.js'
import { formatCount } from '../../core/format/format-words.js'
import type { RecordContent } from '../../core/sessions/log/log-record.js'
export type ToolCallSteps = ReadonlyMap<string, readonly string[]>

export type FoundDifference = Pick<SessionDifference, 'by' | 'subject' | 'recorded' | 'now' | 'message'>

/** Compares an agent's requests with the recorded agent. Unrecorded parts are skipped. */
export function compareAgents(
  then: RecordedAgent,
  now: CompleteRecordedAgent,
  called: ToolCallSteps,
): FoundDifference[] {
  const known = new Set(then.tools?.map(({ name }) => name))
  const present = new Map(now.tools.map((tool) => [tool.name, tool]))
  const gone = [...called.keys()].filter((name) => !known.has(name) && !present.has(name))
  return [
    ...(then.instructions === undefined ? [] : comparePrompts(then.instructions, now.instructions)),
    ...(then.tools === undefined ? [] : compareTools(then.tools)),
    ...gone.map(createGoneDifference),
    ...(then.settings === undefined ? [] : compareSettings(then.settings)),
    ...(then.output === undefined ? [] : compareOutputs(then.output, now.output)),
    ...Object.entries(then.team ?? {}).flatMap(([name, agent]) => compareMember(name, agent)),
  ]

  function compareTools(tools: readonly RecordedTool[]): FoundDifference[] {
    const differences = tools.flatMap((tool): FoundDifference[] => {
      const other = present.get(tool.name)
      return other ? compareTool(tool, other) : [createGoneDifference(tool.name)]
    })
    const added = now.tools
      .filter(({ name }) => !known.has(name))
      .map(({ name }): FoundDifference => {
        const message = `Tool '${name}' is new; it was not offered when the session was recorded.`
        return { by: 'tools', subject: name, recorded: 'not there', now: 'there', message }
      })
    const isSame = differences.length === 0 && added.length === 0
    if (!isSame || tools.every(({ name }, i) => name === now.tools[i]?.name))
      return [...differences, ...added]
    const [before, after] = [formatNames(tools), formatNames(now.tools)]
    const message = `The order of the tools changed from ${before} to ${after}.`
    return [{ by: 'tools', subject: null, recorded: before, now: after, message }]
  }

  function createGoneDifference(name: string): FoundDifference {
    const steps = called.get(name) ?? []
    const use =
      steps.length > 0 ? `The session calls it in ${steps.join(', ')}` : 'The session never calls it'
    const message = `Tool '${name}' is missing. ${use}. Current tools: ${formatNames(now.tools) || 'none'}.`
    return { by: 'tools', subject: name, recorded: 'there', now: 'gone', message }
  }

  function compareSettings(settings: JsonObject): FoundDifference[] {
    return listLeafChanges(settings, now.settings).map(({ path, before, after }) =>
      createDifference('settings', path, before, after, `The setting '${path}' was`),
    )
  }

  function compareMember(name: string, member: RecordedAgent): FoundDifference[] {
    const current = now.team?.[name]
    if (current)
      return compareAgents({ ...member, output: current.output }, current, new Map()).map((found) => ({
        ...found,
        message: `The agent '${name}': ${found.message}`,
      }))
    const message = `The agent '${name}' can no longer be reached through a handoff.`
    return [{ by: 'tools', subject: name, recorded: 'there', now: 'gone', message }]
  }
}

const formatNames = (tools: readonly RecordedTool[]): string => tools.map(({ name }) => name).join(', ')

function comparePrompts(then: string | null, now: string | null): FoundDifference[] {
  // For a model, an empty prompt equals no prompt.
  if ((then ?? '') === (now ?? '')) return []
  const message = `The prompt has changed (instructions):\n${formatTextDifference(then ?? '(none)', now ?? '(none)')}`
  return [{ by: 'prompt', subject: 'instructions', recorded: then ?? '', now: now ?? '', message }]
}

function compareTool(then: RecordedTool, now: RecordedTool): FoundDifference[] {
  const { name } = then
  const isOther = then.description !== now.description
  const differ = (recorded: string, present: string, what: string): FoundDifference => {
    const message = `Tool '${name}' has a different ${what}`
    return { by: 'tools', subject: name, recorded, now: present, message }
  }
  const described = `description:\n${formatTextDifference(then.description, now.description)}`
  const text = differ(then.description, now.description, described)
  const changes = listLeafChanges(then.parameters, now.parameters)
  const lines = changes.slice(0, 8).map(({ path, before, after }) => formatSchemaChange(path, before, after))
  const more = changes.length - lines.length
  if (more > 0) lines.push(`  … and ${formatCount(more, 'more difference')}`)
  const [recorded, present] = [toCanonicalJson(then.parameters), toCanonicalJson(now.parameters)]
  const schema = differ(recorded, present, `schema:\n${lines.join('\n')}`)
  return [...(isOther ? [text] : []), ...(changes.length > 0 ? [schema] : [])]
}

function formatSchemaChange(path: string, before: unknown, after: unknown): string {
  if (before === undefined) return `  + ${path}: ${formatValue(after)}`
  if (after === undefined) return `  - ${path}: ${formatValue(before)}`
  return `  ${path}: was ${formatValue(before)}, is ${formatValue(after)}`
}

function compareOutputs(then: RecordedAgent['output'], now: RecordedAgent['output']): FoundDifference[] {
  return listLeafChanges({ output: then ?? null }, { output: now ?? null }).map(({ path, before, after }) =>
    createDifference('output', path, before, after, `The output format has changed: ${path} was`),
  )
}

function createDifference(
  by: DifferenceKind,
  subject: string,
  before: unknown,
  after: unknown,
  words: string,
): FoundDifference {
  const [recorded, now] = [formatValue(before), formatValue(after)]
  return { by, subject, recorded, now, message: `${words} ${recorded} and is now ${now}.` }
}

const mostLines = 12
const longestLine = 200

/** Removed and added lines, without common leading and trailing lines. */
export function formatTextDifference(before: string, after: string): string {
  const [one, other] = [before.split('\n'), after.split('\n')]
  let start = 0
  while (start < Math.min(one.length, other.length) && one[start] === other[start]) start += 1
  let end = 0
  while (end < Math.min(one.length, other.length) - start && one.at(-1 - end) === other.at(-1 - end)) end += 1
  const gone = one.slice(start, one.length - end)
  const come = other.slice(start, other.length - end)
  const where = start > 0 ? [`  (line ${start + 1})`] : []
  return [...where, ...markLines('-', gone, come[0]), ...markLines('+', come, gone[0])].join('\n')
}

function markLines(sign: string, lines: readonly string[], beside: string | undefined): string[] {
  const shown = lines
    .slice(0, mostLines)
    .map((line, i) => `  ${sign} ${cutNearDifference(line, i === 0 ? beside : undefined)}`)
  const more = lines.length - shown.length
  return more > 0 ? [...shown, `  ${sign} … ${formatCount(more, 'more line')}`] : shown
}

function cutNearDifference(line: string, beside: string | undefined): string {
  if (line.length <= longestLine || beside === undefined) return truncate(line, longestLine)
  let at = 0
  while (at < line.length && line[at] === beside[at]) at += 1
  const from = Math.max(0, at - 60)
  return `${from > 0 ? '…' : ''}${truncate(line.slice(from), longestLine)}`
}

export function formatValue(value: unknown): string {
  if (value === undefined) return 'nothing'
  return truncate(typeof value === 'string' ? `'${value}'` : JSON.stringify(value), longestLine)
}

export function formatCall({ name, arguments: text }: { name: string; arguments: string }): string {
  return `${formatToolName(name)}(${formatArguments(text, 120)})`
}

export const needsWords: Record<CallNeeds | 'denied', [then: string, now: string]> = {
  nobody: ['ran without approval', 'runs without approval'],
  denied: ['was denied by a policy', 'is denied by a policy'],
  approval: ['waited for a person to approve it', 'waits for a person to approve it'],
  client: ['was executed by the client', 'is executed by the client'],
  child: ['waited for its sub-agent', 'waits for its sub-agent'],
}

/** Describes a record, for use after `After …`. */
export function describeEntry(entry: RecordContent, callOf: (callId: string) => string | undefined): string {
  if (entry.type === 'start') return 'the start'
  if (entry.type !== 'event') return `a record of type '${entry.type}'`
  const { event } = entry
  switch (event.type) {
    case 'xstate.done.actor.model': {
      const names = event.output.response.toolCalls.map((call) => formatToolName(call.function.name))
      return names.length > 0 ? `the model's answer that calls ${names.join(', ')}` : "the model's answer"
    }
    case 'xstate.error.actor.model':
      return `the request that failed (${event.error.code})`
    case 'TOOL_RESULT':
    case 'TOOL_OUTPUT':
      return `the result of ${callOf(event.callId) ?? event.callId}`
    case 'APPROVE':
      return `the approval of ${callOf(event.callId) ?? event.callId}`
    case 'REJECT':
      return `the rejection of ${callOf(event.callId) ?? event.callId}`
    default:
      return describeEventType(event.type)
  }
}
