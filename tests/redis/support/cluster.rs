//! A cluster of three masters.

use super::server::{Server, free_port};
use super::{Engine, eventually};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cmd;

/// The last slot; there are as many and one.
const LAST_SLOT: u16 = 16_383;

pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Server>,
}

impl Cluster {
    /// `None` if the engine is not installed.
    pub(crate) async fn start(engine: Engine) -> Option<Self> {
        let mut nodes = Vec::new();
        for _ in 0..3 {
            // Nodes talk to each other at another port.
            let bus = free_port().to_string();
            let options = ["--cluster-enabled", "yes", "--cluster-port", &bus];
            nodes.push(Server::start_with(engine, &options).await?);
        }
        let cluster = Self { nodes };
        cluster.share_out_the_slots().await;
        cluster.introduce_the_nodes().await;
        for node in &cluster.nodes {
            eventually("the cluster is whole", || async {
                let info = cluster_info(node).await;
                info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
            })
            .await;
        }
        Some(cluster)
    }

    async fn share_out_the_slots(&self) {
        let ends = [0, 5_461, 10_922, LAST_SLOT + 1];
        for (node, slots) in self.nodes.iter().zip(ends.windows(2)) {
            let slots: Vec<_> = (slots[0]..slots[1]).collect();
            let mut connection = node.connection().await;
            let add = cmd("CLUSTER").arg("ADDSLOTS").arg(slots).query_async(&mut connection).await;
            let () = add.expect("CLUSTER ADDSLOTS");
        }
    }

    async fn introduce_the_nodes(&self) {
        let mut connection = self.nodes[0].connection().await;
        for node in &self.nodes[1..] {
            let bus: u16 = bus_of(node).await;
            let meet = cmd("CLUSTER")
                .arg("MEET")
                .arg("127.0.0.1")
                .arg(node.port())
                .arg(bus)
                .query_async(&mut connection)
                .await;
            let () = meet.expect("CLUSTER MEET");
        }
    }

    pub(crate) async fn connection(&self) -> ClusterConnection {
        let urls: Vec<_> = self.nodes.iter().map(Server::url).collect();
        let client = ClusterClient::new(urls).expect("URLs of our own");
        client.get_async_connection().await.expect("the cluster is up")
    }
}

async fn cluster_info(node: &Server) -> String {
    let mut connection = node.connection().await;
    cmd("CLUSTER").arg("INFO").query_async(&mut connection).await.expect("CLUSTER INFO")
}

async fn bus_of(node: &Server) -> u16 {
    let mut connection = node.connection().await;
    let config = cmd("CONFIG").arg("GET").arg("cluster-port").query_async(&mut connection).await;
    let config: Vec<(String, u16)> = config.expect("CONFIG GET");
    config[0].1
}
