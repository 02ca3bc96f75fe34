import { formatCount } from '../../core/format/format-words.js'
import { Icon, type IconName } from './icons.js'
import type { RunView } from './run-hooks.js'
import { formatClock, formatStatePath } from '../format.js'

interface SliderProps extends Pick<RunView, 'rows' | 'place' | 'onPlace'> {
  isPlaying: boolean
  isLive: boolean | null
  isOpen: boolean
  onPlay: () => void
  onLive: () => void
  areLanesShown: boolean
  onLanes: () => void
}

export function Slider(props: SliderProps) {
  const { rows, place, isPlaying, isLive, isOpen, onPlace, areLanesShown } = props
  const row = rows[place]
  const last = rows.length - 1
  const jump = (label: string, icon: IconName, to: number) => (
    <button
      class="icon"
      aria-label={label}
      aria-disabled={to === place}
      onClick={() => to === place || onPlace(to)}
    >
      <Icon name={icon} size={18} />
    </button>
  )
  return (
    <div class="slider">
      <div class="slider-buttons">
        {jump('First record', 'first', 0)}
        {jump('Previous record', 'previous', Math.max(0, place - 1))}
        <button
          class="icon play primary"
          aria-label={isPlaying ? 'Stop playing' : 'Play'}
          onClick={props.onPlay}
        >
          <Icon name={isPlaying ? 'pause' : 'resume'} size={18} />
        </button>
        {jump('Next record', 'next', Math.min(last, place + 1))}
        {jump('Last record', 'last', last)}
      </div>
      <input
        type="range"
        min={0}
        max={Math.max(0, last)}
        step={1}
        value={place}
        aria-label="Record"
        aria-valuetext={
          row ? `Record ${row.seq} of ${rows.length}: ${row.label}. ${formatStatePath(row.to)}` : 'No record'
        }
        onInput={(event) => onPlace(Number(event.currentTarget.value))}
      />
      <output>
        {row ? `${formatCount(place + 1)} / ${formatCount(rows.length)}` : ''}
        {row && <small>{formatClock(row.at)}</small>}
      </output>
      <button
        class="icon lanes-button"
        aria-label="Lanes of the timeline"
        aria-pressed={areLanesShown}
        onClick={props.onLanes}
      >
        <Icon name="lanes" size={18} />
      </button>
      {isLive !== null && (
        <button
          class={isOpen ? 'live' : 'live ended'}
          {...(isOpen && { 'aria-pressed': isLive })}
          aria-disabled={!isOpen && place === last}
          onClick={isOpen ? props.onLive : () => place === last || onPlace(last)}
        >
          {isOpen ? 'Live' : 'End'}
        </button>
      )}
    </div>
  )
}
