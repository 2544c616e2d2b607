import type { GpuDevice, GpuFunction } from '../model.js';
import { memory, percent, shortName } from '../format.js';

/** A place of a device: the device, or one of its slices. */
interface Place {
  id: string;
  /** Its part of the device, 0 to 1. */
  part: number;
  name: string;
}

/** Slices of a whole GPU. */
const allSlots = 7;

function placesOf({ uuid, mode, slices }: GpuDevice): Place[] {
  if (mode !== 'mig' || slices.length === 0) return [{ id: uuid, part: 1, name: '' }];
  return slices.map(({ uuid: id, profile, slots = 1 }) => ({ id, part: slots / allSlots, name: profile }));
}

/** The shares that are given away on each place of a device, from its limit down to what it is. */
export function ShareBar({ device }: { device: GpuDevice }) {
  return (
    <div class="shares">
      {placesOf(device).map((place) => (
        <div key={place.id} class="place" style={{ flexGrow: place.part }} title={place.name}>
          {device.functions
            .filter(({ slice = device.uuid }) => slice === place.id)
            .map((one, at) => (
              <div
                key={one.container ?? at}
                class={one.running > 0 ? 'share running' : 'share idle'}
                style={{ width: `${100 * one.smLimit}%` }}
                title={tellFunction(one)}
              >
                {one.action === undefined ? '' : shortName(one.action)}
              </div>
            ))}
        </div>
      ))}
    </div>
  );
}

/** An instance in words. */
export function tellFunction({ action = 'of another namespace', smLimit, memoryMiB, running }: GpuFunction): string {
  return `${action}: ${percent(smLimit)} of the SMs, ${memory(memoryMiB)}, ${running === 0 ? 'idle' : `${running} running`}`;
}

/** A bar that is filled to a part, 0 to 1. */
export function FillBar({ part, label }: { part: number; label: string }) {
  return (
    <meter min={0} max={1} value={part} aria-label={label} title={label}>
      {percent(part)}
    </meter>
  );
}
