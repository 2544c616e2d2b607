import { link } from './live.js';
import { hrefOf, route } from './route.js';
import { session, signOut } from './session.js';
import { ClusterPage } from './pages/cluster.js';
import { CostPage } from './pages/cost.js';
import { DevicePage } from './pages/device.js';
import { OverviewPage } from './pages/overview.js';
import { PoliciesPage } from './pages/policies.js';
import { QueuePage } from './pages/queue.js';
import { SignInPage } from './pages/sign-in.js';

const pages = [
  { name: 'Overview', at: '' },
  { name: 'Queue', at: 'queue' },
  { name: 'Policy', at: 'policies' },
  { name: 'Cost', at: 'cost' },
  { name: 'Cluster', at: 'cluster' },
] as const;

/** The page of an address. */
function pageOf([first = '', id = '']: readonly string[]) {
  switch (first) {
    case 'devices':
      return <DevicePage uuid={id} />;
    case 'queue':
      return <QueuePage />;
    case 'policies':
      return <PoliciesPage />;
    case 'cost':
      return <CostPage />;
    case 'cluster':
      return <ClusterPage />;
    default:
      return <OverviewPage />;
  }
}

/** The whole page. */
export function Console() {
  const who = session.value;
  if (who === undefined) return <SignInPage />;
  const [first = ''] = route.value;
  return (
    <>
      <header>
        <a class="brand" href={hrefOf()}>
          gpuwhisk
        </a>
        <nav aria-label="Pages">
          {pages.map(({ name, at }) => (
            <a key={at} href={hrefOf(...(at === '' ? [] : [at]))} aria-current={first === at ? 'page' : undefined}>
              {name}
            </a>
          ))}
        </nav>
        <Link />
        <span class="who">{who.isOperator ? 'operator' : who.namespace}</span>
        <button type="button" onClick={() => signOut()}>
          Sign out
        </button>
      </header>
      <main>{pageOf(route.value)}</main>
    </>
  );
}

/** Whether what is shown is of now. */
function Link() {
  const words = { connecting: 'connecting', live: 'live', lost: 'connection lost, trying again' };
  return (
    <span class={`link ${link.value}`} role="status">
      {words[link.value]}
    </span>
  );
}
