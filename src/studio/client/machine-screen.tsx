import { formatWakeTime } from '../../core/base/clock.js'
import { formatCount } from '../../core/format/format-words.js'
import type { Source } from './data-source.js'
import { paths } from '../routes.js'
import { JsonTree } from './json-tree.js'
import { Table } from './long-text.js'
import { Loading, Trouble, useLoaded } from './loading.js'
import { useTimeout } from './page.js'
import type { StatePill } from './run-head.js'
import { sessionAddress } from '../format.js'

const reloadMs = 2_000

interface MachineProps {
  source: Source
  id: string
  /** The component is a prop, because an import would move the head of the run page into a separate file. */
  Pill: typeof StatePill
}

export function MachineScreen({ source, id, Pill }: MachineProps) {
  const { value: view, error, reload } = useLoaded(id, () => source.send(paths.machine(id)))
  useTimeout(view?.status === 'active' ? reloadMs : null, reload, [view, error])
  if (error !== null && !view) return <Trouble error={error} onRetry={reload} />
  if (!view) return <Loading what="Loading the session" />
  const { session, machine, context, output, actors, waits, records, children } = view
  return (
    <main class="machine-screen stack">
      <h1>
        {session.name ?? id} <Pill session={session} />
      </h1>
      <p class="lead">
        A session of the state machine {machine}, with {formatCount(records.length, 'event')}.
      </p>
      {(actors.length > 0 || waits.length > 0) && (
        <ul class="plain">
          {actors.map((src) => (
            <li key={src}>Runs {src}.</li>
          ))}
          {waits.map(({ event, at }) => (
            <li key={event}>
              Timer <code>{event}</code>: {formatWakeTime(at)}
            </li>
          ))}
        </ul>
      )}
      {children.length > 0 && (
        <section>
          <h2>Agents</h2>
          <ul class="plain">
            {children.map((child) => (
              <li key={child.id}>
                <a href={sessionAddress(child.id)}>{child.title || child.id}</a> <Pill session={child} />
              </li>
            ))}
          </ul>
        </section>
      )}
      {[
        ['Error', view.error],
        ['Output', output],
        ['Context', context],
      ].map(
        ([title, data]) =>
          data !== undefined && (
            <section key={String(title)}>
              <h2>{String(title)}</h2>
              <JsonTree value={data} />
            </section>
          ),
      )}
      <section>
        <h2>Events</h2>
        <Table class="machine-events" head={['No.', 'Event', 'State', 'Time']}>
          {records.toReversed().map(({ seq, at, event, data, value, refused }) => (
            <tr key={seq}>
              <td>{seq}</td>
              <td>
                <code>{event}</code>
                {data !== null && <JsonTree value={data} />}
                {refused !== null && <p class="refused">{refused}</p>}
              </td>
              <td>{refused === null ? value : <span class="refused">refused</span>}</td>
              <td>
                <time dateTime={new Date(at).toISOString()}>{formatWakeTime(at)}</time>
              </td>
            </tr>
          ))}
        </Table>
      </section>
    </main>
  )
}
