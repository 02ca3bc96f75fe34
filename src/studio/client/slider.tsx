import { formatCount } from '../../core/format/format-words.js'
import { Icon, type IconName } from './icons.js'
import type { RunPage } from './run-page.js'
import { formatClock, formatStatePath } from '../format.js'

export function Slider({ run }: { run: RunPage }) {
  const { view, row, place, isPlaying, go, areLanesShown } = run
  const { rows, session } = view
  const last = rows.length - 1
  const isOpen = ['running', 'waiting', 'sleeping'].includes(session.status)
  const isLive = run.isLive && (isOpen || place === last)
  const jump = (label: string, icon: IconName, to: number) => (
    <button
      class="icon"
      aria-label={label}
      aria-disabled={to === place}
      onClick={() => to === place || go(to)}
    >
      <Icon name={icon} size={18} />
    </button>
  )
  return (
    <div class="slider">
      <div class="slider-buttons">
        {jump('First record', 'first', 0)}
        {jump('Previous record', 'previous', Math.max(0, place - 1))}
        <button class="icon play primary" aria-label={isPlaying ? 'Stop playing' : 'Play'} onClick={run.play}>
          <Icon name={isPlaying ? 'pause' : 'resume'} size={18} />
        </button>
        {jump('Next record', 'next', Math.min(last, place + 1))}
        {jump('Last record', 'last', last)}
      </div>
      <input
        type="range"
        min={0}
        max={last}
        step={1}
        value={place}
        aria-label="Record"
        aria-valuetext={`Record ${row.seq} of ${rows.length}: ${row.label}. ${formatStatePath(row.to)}`}
        onInput={(event) => go(Number(event.currentTarget.value))}
      />
      <output>
        {`${formatCount(place + 1)} / ${formatCount(rows.length)}`}
        <small>{formatClock(row.at)}</small>
      </output>
      <button
        class="icon lanes-button"
        aria-label="Lanes of the timeline"
        aria-pressed={areLanesShown}
        onClick={() => run.showLanes(!areLanesShown)}
      >
        <Icon name="lanes" size={18} />
      </button>
      {!run.source.isFile && (
        <button
          class={isOpen ? 'live' : 'live ended'}
          {...(isOpen && { 'aria-pressed': isLive })}
          aria-disabled={!isOpen && place === last}
          onClick={() => (isOpen ? run.setLive(!isLive) : place === last || go(last))}
        >
          {isOpen ? 'Live' : 'End'}
        </button>
      )}
    </div>
  )
}
