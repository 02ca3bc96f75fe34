// The report in docs/performance.md: ratios, their baselines, missing peers with their reasons, and the measurements that
// Statewright does not win.
import { cpus } from 'node:os'
import { table } from '../block.mjs'
import { median, spread } from '../statistics.mjs'
import { versionOf } from './install.mjs'
import { bare } from './peers.mjs'

const ours = 'statewright'

/** Pairs by round. A peer that failed in one round has no figure. */
const ratios = ({ figures, failed }, name) =>
  failed.has(name) || failed.has(bare)
    ? []
    : (figures.get(name) ?? []).map((value, i) => value / figures.get(bare)[i])

const rowsOf = (results, some, cell) =>
  some.map(({ name, title }) => ({
    loop: title,
    ...Object.fromEntries(results.map((result) => [result.measure.title, cell(result, name)])),
  }))

function cheaper(result, some) {
  const of = (name) => median(ratios(result, name))
  if (ratios(result, ours).length === 0) return undefined
  const ahead = some.filter(({ name }) => ratios(result, name).length > 0 && of(name) < of(ours))
  return ahead.length > 0 && `- ${result.measure.title}: ${ahead.map(({ title }) => title).join(', ')}`
}

/** The text between the markers. */
export function report({ results, some, node, rounds }) {
  const ratio = (result, name) => {
    const all = ratios(result, name)
    if (all.length === 0) return '–'
    return name === bare ? '1' : `${median(all).toFixed(2)} (${spread(all)})`
  }
  const figure = ({ measure, figures, failed }, name) =>
    failed.has(name) ? '–' : measure.show(median(figures.get(name)))

  const failures = results.flatMap(({ measure, failed }) =>
    [...failed].map(
      ([name, why]) => `- ${some.find((peer) => peer.name === name).title}, ${measure.title}: ${why}`,
    ),
  )
  const behind = results.map((result) => cheaper(result, some)).filter(Boolean)
  const versions = some
    .flatMap(({ packages }) => packages)
    .map((name) => `${name} ${versionOf(name) ?? '(not installed)'}`)
  const [{ model }] = cpus()

  return [
    'The values are ratios to the bare loop on the `openai` client, with the middle half of the rounds in parentheses. Less is better.',
    table(rowsOf(results, some, ratio)),
    'The absolute medians:',
    table(rowsOf(results, some, figure)),
    ...(failures.length > 0 ? [`Without a figure:\n\n${failures.join('\n')}`] : []),
    ...(behind.length > 0 ? [`Cheaper than Statewright:\n\n${behind.join('\n')}`] : []),
    `${versions.join(', ')}. Node ${node.version}, ${cpus().length} × ${model.trim()}, medians of ${rounds === 1 ? 'one round' : `${rounds} rounds`}, ${new Date().toISOString().slice(0, 10)}.`,
  ].join('\n\n')
}
