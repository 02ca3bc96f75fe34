import { Component, type ComponentChildren, render } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { decodePercent } from '../../core/base/text.js'
import { keepFocus, showControlsEverywhere, useAddressHash } from './page.js'
import { createLazyScreen, Trouble } from './loading.js'
import { useKeys } from './run-hooks.js'
import { MachineScreen, RunScreen } from './run-screen.js'
import { LatestScreen, SessionsScreen } from './sessions-screen.js'
import { createFileSource, createServerSource, type Source } from './data-source.js'
import { paths } from '../routes.js'

const ChartScreen = createLazyScreen(() => import('./chart-screen.js').then((part) => part.ChartScreen))
const CompareScreen = createLazyScreen(() => import('./compare-screen.js').then((part) => part.CompareScreen))

/** `#/session/ID/12` → `['session', 'ID', '12']` */
function parseHash(hash: string): string[] {
  return hash.replace(/^#\/?/, '').split('/').filter(Boolean).map(decodePercent)
}

function App({ source, onlySession }: { source: Source; onlySession: string | null }) {
  const address = useAddressHash()
  const [screen, a = '', b = ''] = parseHash(address.hash)
  const [problem, setProblem] = useState<string | null>(null)
  const seq = /^\d+$/.test(b) ? Number(b) : null
  // The record is part of the key, because a link may point to another record of the same session.
  const run = (id: string) => (
    <RunScreen key={`${id}/${b}`} source={source} id={id} seq={seq} onProblem={setProblem} />
  )
  return (
    <>
      <header class="top">
        <a class="brand" href="#/">
          <svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true" class="drawn">
            <rect x="2" y="4" width="9" height="7" rx="2" />
            <rect x="13" y="13" width="9" height="7" rx="2" class="lit" />
            <path d="M11 7.5h4.5a2 2 0 0 1 2 2V13" />
          </svg>
          Statewright
        </a>
        <nav aria-label="Screens">
          <a href="#/" {...(screen !== 'chart' && { 'aria-current': 'page' as const })}>
            {source.isFile ? 'Run' : 'Sessions'}
          </a>
          <a href="#/chart" {...(screen === 'chart' && { 'aria-current': 'page' as const })}>
            Chart
          </a>
        </nav>
        {(screen === 'session' || screen === 'live' || onlySession !== null) && <Keys />}
      </header>
      {problem !== null && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <ErrorBoundary key={`${screen ?? ''} ${a}`}>
        {screen === 'chart' ? (
          <ChartScreen source={source} state={a === '' ? null : a} />
        ) : onlySession !== null ? (
          run(onlySession)
        ) : screen === 'session' ? (
          run(a)
        ) : screen === 'machine' ? (
          <MachineScreen key={a} source={source} id={a} />
        ) : screen === 'live' ? (
          <LatestScreen source={source} onProblem={setProblem} />
        ) : screen === 'compare' ? (
          <CompareScreen source={source} a={a} b={b} />
        ) : (
          <SessionsScreen
            source={source}
            query={screen === 'find' ? a : ''}
            address={address}
            onProblem={setProblem}
          />
        )}
      </ErrorBoundary>
    </>
  )
}

const keys: readonly [key: string, effect: string][] = [
  ['← →', 'previous and next record, with Shift by step'],
  ['Home End', 'first and last record'],
  ['j k', 'next and previous step in the list'],
  ['Space', 'play'],
  ['1 – 7', 'tabs'],
  ['a', 'the question waiting for you'],
  ['c', 'visited part or whole chart'],
  ['+ − 0', 'zoom the timeline, show everything'],
  ['t', 'space records by time or evenly'],
]

function Keys() {
  const dialog = useRef<HTMLDialogElement>(null)
  const show = (): void => dialog.current?.showModal()
  useKeys({ '?': show })
  return (
    <>
      <button class="icon keys" aria-label="Keys" title="Keys (?)" onClick={show}>
        ?
      </button>
      <dialog ref={dialog} class="keys-list" aria-labelledby="keys-title">
        <form method="dialog">
          <h2 id="keys-title">Keys</h2>
          <dl class="facts">
            {keys.map(([key, effect]) => (
              <div key={key}>
                <dt>
                  <kbd>{key}</kbd>
                </dt>
                <dd>{effect}</dd>
              </div>
            ))}
          </dl>
          <div class="buttons">
            <button type="submit">Close</button>
          </div>
        </form>
      </dialog>
    </>
  )
}

class ErrorBoundary extends Component<{ children: ComponentChildren }, { error: unknown }> {
  override state: { error: unknown } = { error: null }

  static override getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error }
  }

  override render(): ComponentChildren {
    if (this.state.error !== null) {
      return <Trouble error={this.state.error} onRetry={() => this.setState({ error: null })} />
    }
    return this.props.children
  }
}

async function startPage(): Promise<void> {
  showControlsEverywhere()
  keepFocus()
  const file = createFileSource(document.querySelector('#statewright[type="application/json"]'))
  const root = document.getElementById('app') ?? document.body.appendChild(document.createElement('div'))
  root.id = 'app'
  const held = file ? await file.send(paths.found({})) : null
  render(
    <App source={file ?? createServerSource()} onlySession={held ? (held.sessions[0]?.id ?? '') : null} />,
    root,
  )
}

void startPage()
