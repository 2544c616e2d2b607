/** A figure with its name and a note, in a list of class `figures`. */
export function Figure({ name, value, note = '' }: { name: string; value: number | string; note?: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {value} <small>{note}</small>
      </dd>
    </div>
  );
}
