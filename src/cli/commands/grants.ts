import type { Grant } from '../../../machines/agent/grant.js'
import { readSessionAt } from '../../core/sessions/replay-session.js'
import { defineCommand } from '../command.js'
import { storeOption } from '../options.js'
import { formatIsoTime, writeRows } from '../output.js'
import { withSession } from '../session-store.js'

export const grantsCommand = defineCommand({
  name: 'grants',
  about: "Lists a session's grants, which approve later calls.",
  positional: 'ID',
  options: { json: { about: 'print one line of JSON for each grant' }, ...storeOption },
  notes: ['To end a grant: statewright send ID revoke GRANT'],
  execute: (parsed, io) =>
    withSession(parsed, io, async (store, { id }) => {
      const { run, state } = await readSessionAt(store, id)
      const { grants = [] } = run?.context ?? state
      const empty = `Session ${id} has no grants.`
      const heads = ['grant', 'tool', 'arguments', 'uses left', 'until', 'given by']
      writeRows(grants, { isJson: parsed.values.json, empty, heads, toCells }, io)
    }),
})

function toCells({ id, tool, when, arguments: exact = '', uses, until, givers }: Grant): string[] {
  const limits = when === undefined ? exact : JSON.stringify(when)
  const people = givers.map(({ by }) => by?.id ?? 'unknown').join(', ')
  const end = (until === undefined ? null : formatIsoTime(until)) ?? 'revoked'
  return [id, tool, when && limits === '{}' ? 'any' : limits, `${uses ?? 'unlimited'}`, end, people]
}
