import type { AnyEventObject } from 'xstate'
import { describeEvent, describeState } from '../../core/chart/state-labels.js'
import { formatPath, type PathStep } from '../machine-path.js'
import { createWriter } from '../state-key.js'
import type { MachineDiff, MachineDifference } from './machine-diff.js'

const write = createWriter()

/** A difference as text: what changed, and the trace that shows it. */
export function formatDifference({
  title,
  kind,
  before,
  after,
  contexts,
}: Omit<MachineDifference, 'toString'>): string {
  const shared = before.steps.slice(0, -1)
  const [old, now] = [before.steps.at(-1), after.steps.at(-1)]
  const lines = [title, `Starting with ${before.input}:`]
  if (shared.length > 0) lines.push(formatPath({ steps: shared }))
  if (contexts)
    lines.push(`  (the contexts differ since '${contexts.label}', in ${contexts.keys.join(', ')})`)
  lines.push(
    `  ${old?.label ?? 'start'}`,
    `    before → ${describeStep(old, kind)}`,
    `    after  → ${describeStep(now, kind)}`,
  )
  return lines.join('\n')
}

function describeStep(step: PathStep | undefined, kind: MachineDifference['kind']): string {
  if (!step) return ''
  const where = describeState(step.state)
  if (kind === 'output') return `${where} with the output ${shorten(write(step.output))}`
  if (kind === 'emitted')
    return `${where}, emits ${shorten((step.emitted ?? []).map(toText).join(', ') || 'nothing')}`
  return where
}

function toText(event: AnyEventObject): string {
  return describeEvent(event)
}

const maxText = 300

function shorten(text: string): string {
  return text.length > maxText ? `${text.slice(0, maxText)} …` : text
}

/** All differences as text. */
export function formatDiff({ differences, pairs, bounded, declared }: Omit<MachineDiff, 'toString'>): string {
  const where = bounded === null ? `all of ${pairs} pairs of states` : `the first ${pairs} pairs of states`
  const limit = bounded === null ? [] : [bounded]
  if (differences.length === 0) return [`The machines behave alike in ${where}.`, ...limit].join('\n')
  const count = differences.length === 1 ? '1 transition' : `${differences.length} transitions`
  return [
    `The machines differ at ${count}, in ${where}.`,
    ...limit,
    ...formatList('Declared only before', declared.removed),
    ...formatList('Declared only after', declared.added),
    ...differences.map((difference, i) => `\n${i + 1}. ${formatDifference(difference)}`),
  ].join('\n')
}

function formatList(title: string, ids: readonly string[]): string[] {
  return ids.length === 0 ? [] : [`${title}:`, ...ids.map((id) => `  ${id}`)]
}
